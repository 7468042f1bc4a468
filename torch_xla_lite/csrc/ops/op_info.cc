#include "torch_xla_lite/csrc/ops/op_info.h"

#include <ATen/core/jit_type.h>

#include <algorithm>
#include <mutex>

#include "torch_xla_lite/csrc/ops/op_name.h"

namespace torch_xla_lite::ops {
namespace {

using Overloads = std::unordered_multimap<std::string, c10::OperatorHandle>;

// All aten overloads by their base name ("aten::add"). Built on first use, in a millisecond.
const Overloads& AllOverloads() {
  static const auto* overloads = [] {
    auto* all = new Overloads;
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
      if (!name.name.starts_with("aten::")) continue;
      if (auto op = dispatcher.findSchema(name)) all->emplace(name.name, *op);
    }
    return all;
  }();
  return *overloads;
}

bool IsWritten(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

bool Mutates(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.arguments(), IsWritten);
}

// Whether `functional` has the arguments of `schema`, without out= arguments, and writes to none.
bool IsFunctionalFormOf(const c10::FunctionSchema& functional, const c10::FunctionSchema& schema) {
  if (Mutates(functional)) return false;
  std::vector<const c10::Argument*> wanted;
  for (const auto& argument : schema.arguments()) {
    if (!argument.is_out()) wanted.push_back(&argument);
  }
  return std::ranges::equal(functional.arguments(), wanted,
                            [](const c10::Argument& a, const c10::Argument* b) {
                              return a.name() == b->name() && *a.type() == *b->type();
                            });
}

// The base names that the functional form of an in-place or out= op may have.
std::vector<std::string> FunctionalNames(const std::string& name) {
  std::string stem = name;
  if (stem.ends_with("__") && stem.starts_with("aten::__i")) {
    stem = "aten::__" + stem.substr(9);  // __iand__ -> __and__
  } else if (stem.ends_with("_")) {
    stem.pop_back();
  }
  return {stem, stem + "_functional"};
}

std::optional<std::string> FunctionalForm(const c10::FunctionSchema& schema) {
  std::optional<std::string> found;
  for (const std::string& name : FunctionalNames(schema.name())) {
    const auto [begin, end] = AllOverloads().equal_range(name);
    for (auto it = begin; it != end; ++it) {
      const c10::OperatorHandle& candidate = it->second;
      if (!IsFunctionalFormOf(candidate.schema(), schema)) continue;
      found = FullName(candidate.operator_name());
      if (candidate.operator_name().overload_name == schema.overload_name()) return found;
    }
  }
  return found;
}

// Whether an op that writes to arguments has a lowering under its own name. The lowering returns
// their new values after its results, as a functional form does. Not for out= arguments, whose old
// values cannot be passed to it.
bool HasLoweringOfItsOwn(const c10::FunctionSchema& schema, const std::string& name,
                         const RegisteredOps& registered) {
  return (FactsOf(name).is_lowered || registered.contains(name)) &&
         !std::ranges::any_of(schema.arguments(), &c10::Argument::is_out);
}

// The type of an argument without Optional and List.
c10::TypePtr ElementType(c10::TypePtr type) {
  while (type->kind() == c10::TypeKind::OptionalType || type->kind() == c10::TypeKind::ListType) {
    type = type->containedType(0);
  }
  return type;
}

OpInfo::Argument AnalyzeArgument(const c10::Argument& argument) {
  OpInfo::Argument result{OpInfo::Role::kOther, std::nullopt, false};
  if (argument.is_out()) {
    result.role = OpInfo::Role::kOut;
    return result;
  }
  switch (ElementType(argument.type())->kind()) {
    case c10::TypeKind::TensorType:
      result.role = OpInfo::Role::kTensor;
      break;
    case c10::TypeKind::GeneratorType:
      result.role = OpInfo::Role::kGenerator;
      break;
    case c10::TypeKind::NumberType:
      result.role = OpInfo::Role::kScalar;
      if (argument.default_value() && argument.default_value()->isScalar()) {
        const c10::Scalar value = argument.default_value()->toScalar();
        if (!value.isComplex()) result.constant = value.toDouble();
      }
      // Full of zeros is known to be zeros (infer.cc), full of anything else is one graph. The
      // threshold of relu's gradient is zero, which every dtype has.
      if (argument.name() == "fill_value" || argument.name() == "threshold") result.constant = 0;
      result.is_exponent = argument.name() == "exponent";
      result.negative_is_constant = result.is_exponent;
      break;
    default:
      break;
  }
  return result;
}

// The arguments that torch does not make a tensor of, which would wrap around.
std::vector<int> FindRangedNumbers(const c10::FunctionSchema& schema, const OpFacts& facts) {
  std::vector<int> found;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    const std::string& name = argument.name();
    const bool is_operand =
        name == "self" || name == "other" || name == "scalar" || name == "scalars";
    // masked_fill and index_fill take them as tensors, too.
    const bool is_number = ElementType(argument.type())->kind() == c10::TypeKind::NumberType ||
                           (name == "value" && schema.name().find("_fill") != std::string::npos);
    if (is_operand ? facts.casts_numbers : is_number) found.push_back(static_cast<int>(i));
  }
  return found;
}

// What torch's kernel of an op that writes allows an argument to share.
OpInfo::Sharing SharingOf(const OpFacts& facts, bool is_pointwise, const std::string& argument) {
  using enum OpInfo::Sharing;
  if (!facts.shares) return is_pointwise ? kSame : kAny;
  if (HasWord(*facts.shares, argument + "=same")) return kSame;
  return HasWord(*facts.shares, argument + "=nothing") ? kNothing : kAny;
}

// Whether an argument is a list of tensors that may be missing, as indices are.
bool IsIndexList(const c10::Argument& argument) {
  return argument.name() == "indices" && argument.type()->kind() == c10::TypeKind::ListType &&
         argument.type()->containedType(0)->kind() == c10::TypeKind::OptionalType;
}

// The argument that a result is, if the op writes to it; otherwise -1.
int WrittenSource(const c10::FunctionSchema& schema, const c10::Argument& result) {
  int source = -1;
  if (result.alias_info() == nullptr) return source;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const auto* info = schema.arguments()[i].alias_info();
    if (info == nullptr || info->beforeSets() != result.alias_info()->beforeSets()) continue;
    if (info->isWrite()) source = static_cast<int>(i);
  }
  return source;
}

// By the schema alone.
OpInfo::Kind KindOf(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  if (op.hasTag(at::Tag::inplace_view)) return OpInfo::Kind::kInplaceView;
  if (Mutates(schema)) return OpInfo::Kind::kMutating;
  const bool is_view = std::ranges::any_of(schema.returns(), [&](const c10::Argument& result) {
    return result.alias_info() != nullptr && WrittenSource(schema, result) < 0;
  });
  return is_view ? OpInfo::Kind::kView : OpInfo::Kind::kFunctional;
}

bool IsTensorResult(const c10::Argument& result) {
  return ElementType(result.type())->kind() == c10::TypeKind::TensorType;
}

}  // namespace

std::optional<IndexArguments> FindIndexArguments(const c10::OperatorHandle& functional) {
  const c10::FunctionSchema& schema = functional.schema();
  if (!FactsOf(FullName(functional.operator_name())).indexes) return std::nullopt;
  const auto place = [&](const char* name) { return schema.argumentIndexWithName(name); };
  return IndexArguments{place("input_sizes").value_or(0), *place("dim"),
                        place("start").value_or(place("index").value_or(-1)),
                        place("end").value_or(-1), place("step").value_or(-1)};
}

bool IsCompositeMutation(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) &&
         Mutates(op.schema()) && !FunctionalForm(op.schema());
}

OpInfo::OpInfo(const c10::OperatorHandle& op, const RegisteredOps& registered)
    : op(op), name(FullName(op.operator_name())), kind(KindOf(op)) {
  ReadSchema();
  const c10::FunctionSchema& schema = op.schema();
  if (kind == Kind::kInplaceView || kind == Kind::kMutating) {
    if (auto functional = FunctionalForm(schema)) {
      name = *functional;
    } else if (!HasLoweringOfItsOwn(schema, name, registered)) {
      kind = Kind::kOnCpu;
    }
  }
  if (!std::ranges::all_of(schema.returns(), IsTensorResult)) kind = Kind::kOnCpu;
  facts = &FactsOf(name);
  const auto added = registered.find(name);
  is_lowered = facts->is_lowered || added != registered.end();
  has_runtime_scalars =
      is_lowered && !(added != registered.end() ? added->second : facts->constants);
  is_random = op.hasTag(at::Tag::nondeterministic_seeded);
  // An ATen kernel would draw from the CPU's generator whenever the graph runs.
  if (is_random && !is_lowered) kind = Kind::kOnCpu;
  ReadFacts();
  ReadSharing();
}

void OpInfo::ReadSchema() {
  const c10::FunctionSchema& schema = op.schema();
  for (const auto& argument : schema.arguments()) {
    if (IsWritten(argument)) mutated.push_back(static_cast<int>(arguments.size()));
    arguments.push_back(AnalyzeArgument(argument));
    has_out |= arguments.back().role == Role::kOut;
  }
  for (const auto& result : schema.returns()) results.push_back(WrittenSource(schema, result));
  takes_cpu_indices = std::ranges::any_of(schema.arguments(), IsIndexList);
  if (schema.argumentIndexWithName("device") && schema.argumentIndexWithName("pin_memory")) {
    options = schema.argumentIndexWithName("layout").value_or(-1);
  }
}

void OpInfo::ReadFacts() {
  const c10::FunctionSchema& schema = op.schema();
  ranged_numbers = FindRangedNumbers(schema, *facts);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    arguments[i].negative_is_constant |= HasWord(facts->negative, argument.name());
    // Overloads with a tensor as `lr` have the same lowering.
    if (!HasWord(facts->runtime_floats, argument.name()) || arguments[i].role == Role::kTensor)
      continue;
    arguments[i].role = Role::kScalar;
    // Zero turns a term off, but for the rate of a schedule that starts there. A default is what
    // most programs have.
    const auto& standard = argument.default_value();
    const bool has_default = standard && standard->isDouble();
    if (argument.name() != "lr") arguments[i].constant = has_default ? standard->toDouble() : 0;
  }
  if (kind == Kind::kFunctional && results.size() == 1) {
    const std::string given(facts->strides.empty() ? "memory_format" : facts->strides);
    layout = schema.argumentIndexWithName(given).value_or(-1);
  }
  if (const auto functional = FindOp(name); is_lowered && functional) {
    index = FindIndexArguments(*functional);
  }
  if (index) {
    arguments[index->start].role = Role::kStart;
    if (index->end >= 0) arguments[index->end].role = Role::kEnd;
  }
}

void OpInfo::ReadSharing() {
  const auto functional = FindOp(name);
  if (kind != Kind::kMutating || !functional) return;
  const auto& declared = op.schema().arguments();
  writes_lists = !has_out && declared[mutated[0]].type()->kind() == c10::TypeKind::ListType;
  const bool goes_through_lists = writes_lists && name.starts_with("aten::_foreach_");
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool is_written = std::ranges::find(mutated, i) != mutated.end();
    if (arguments[i].role != Role::kTensor || is_written) continue;
    arguments[i].sharing =
        goes_through_lists
            ? Sharing::kSame
            : SharingOf(*facts, functional->hasTag(at::Tag::pointwise), declared[i].name());
    limits_sharing |= arguments[i].sharing != Sharing::kAny;
  }
}

}  // namespace torch_xla_lite::ops
