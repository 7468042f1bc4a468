#include "torch_xla_lite/csrc/dispatch/op_info.h"

#include <ATen/core/jit_type.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "torch_xla_lite/csrc/dispatch/op_name.h"

namespace torch_xla_lite::dispatch {
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
                         const LoweredOps& lowered) {
  return lowered.contains(name) && !std::ranges::any_of(schema.arguments(), &c10::Argument::is_out);
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
      // Full of zeros is known to be zeros (infer.cc), full of anything else is one graph.
      if (argument.name() == "fill_value") result.constant = 0;
      result.is_exponent = argument.name() == "exponent";
      result.negative_is_constant = result.is_exponent || argument.name() == "lambd";
      break;
    default:
      break;
  }
  return result;
}

// The arguments that torch does not make a tensor of, which would wrap around.
std::vector<int> FindRangedNumbers(const c10::FunctionSchema& schema) {
  // These make tensors of none of their numbers.
  static constexpr std::array<std::string_view, 5> kWithoutOperands{
      "aten::where", "aten::_foreach_addc", "aten::_foreach_clamp_", "aten::_foreach_maximum",
      "aten::_foreach_minimum"};
  const bool has_no_operand = std::ranges::any_of(
      kWithoutOperands, [&](std::string_view op) { return schema.name().starts_with(op); });
  std::vector<int> found;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    const std::string& name = argument.name();
    const bool is_operand =
        name == "self" || name == "other" || name == "scalar" || name == "scalars";
    // masked_fill and index_fill take them as tensors, too.
    const bool is_number = ElementType(argument.type())->kind() == c10::TypeKind::NumberType ||
                           (name == "value" && schema.name().find("_fill") != std::string::npos);
    if (is_operand ? has_no_operand : is_number) found.push_back(static_cast<int>(i));
  }
  return found;
}

// `name` is that of a functional form.
bool IsRoundedDivision(std::string_view name) {
  return name == "aten::floor_divide" || name.starts_with("aten::floor_divide.") ||
         name.starts_with("aten::remainder.") || name.starts_with("aten::fmod.") ||
         name == "aten::div.Tensor_mode" || name == "aten::div.Scalar_mode";
}

// What torch's kernel of an op that writes allows an argument to share. `functional` is the op
// without the write.
OpInfo::Sharing SharingOf(const c10::OperatorHandle& functional, std::string_view argument) {
  using enum OpInfo::Sharing;
  using Rules = std::vector<std::pair<std::string_view, OpInfo::Sharing>>;
  // Their kernels differ from those of pointwise ops, which allow the same elements, and from all
  // others, which copy their operands or read what they have written.
  static const auto* table = new std::unordered_map<std::string_view, Rules>{
      {"aten::addbmm", {{"self", kSame}}},
      {"aten::addmm", {{"self", kSame}}},
      {"aten::addmv", {{"self", kSame}}},
      {"aten::addr", {{"self", kSame}, {"vec1", kSame}, {"vec2", kSame}}},
      {"aten::baddbmm", {{"self", kSame}}},
      {"aten::bernoulli", {{"self", kSame}, {"p", kSame}}},
      {"aten::cat", {{"tensors", kNothing}}},
      {"aten::celu", {}},
      {"aten::clone", {}},
      {"aten::cumprod", {{"self", kSame}}},
      {"aten::cumsum", {{"self", kSame}}},
      {"aten::floor_divide", {{"self", kSame}, {"other", kSame}}},
      {"aten::gather", {{"self", kNothing}, {"index", kSame}}},
      {"aten::index", {{"self", kNothing}}},
      {"aten::index_add", {{"self", kSame}, {"source", kNothing}}},
      {"aten::index_copy", {{"self", kSame}, {"source", kNothing}}},
      {"aten::index_put", {{"self", kSame}, {"values", kNothing}}},
      {"aten::index_reduce", {{"self", kSame}, {"source", kNothing}}},
      {"aten::index_select", {{"self", kNothing}}},
      {"aten::ldexp", {{"self", kSame}}},
      {"aten::linalg_cross", {{"self", kNothing}, {"other", kNothing}}},
      {"aten::linalg_solve_triangular", {{"B", kSame}}},
      {"aten::logcumsumexp", {{"self", kSame}}},
      {"aten::masked_fill", {{"mask", kSame}}},
      {"aten::masked_select", {{"self", kNothing}, {"mask", kNothing}}},
      {"aten::mse_loss", {{"self", kSame}, {"target", kSame}}},
      {"aten::mvlgamma", {}},
      {"aten::normal", {{"mean", kSame}, {"std", kSame}}},
      {"aten::put", {{"source", kNothing}}},
      {"aten::relu", {}},
      {"aten::renorm", {{"self", kSame}}},
      {"aten::scatter", {{"self", kSame}, {"src", kNothing}}},
      {"aten::scatter_add", {{"self", kSame}, {"src", kNothing}}},
      {"aten::scatter_reduce", {{"self", kSame}, {"src", kNothing}}},
      {"aten::sort", {{"self", kSame}}},
      {"aten::stack", {{"tensors", kNothing}}},
      {"aten::take", {{"self", kNothing}, {"index", kNothing}}},
      {"aten::threshold", {}},
      {"aten::topk", {{"self", kSame}}},
  };
  const auto found = table->find(functional.schema().name());
  if (found == table->end()) return functional.hasTag(at::Tag::pointwise) ? kSame : kAny;
  const auto rule = std::ranges::find(found->second, argument, &Rules::value_type::first);
  return rule == found->second.end() ? kAny : rule->second;
}

bool IsTensorResult(const c10::Argument& result) {
  return ElementType(result.type())->kind() == c10::TypeKind::TensorType;
}

}  // namespace

const IndexArguments* FindIndexArguments(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, IndexArguments>, 6> kTable{{
      {"aten::select.int", {0, 1, 2, -1, -1}},
      {"aten::slice.Tensor", {0, 1, 2, 3, 4}},
      {"aten::select_backward", {1, 2, 3, -1, -1}},
      {"aten::slice_backward", {1, 2, 3, 4, 5}},
      {"aten::select_scatter", {0, 2, 3, -1, -1}},
      {"aten::slice_scatter", {0, 2, 3, 4, 5}},
  }};
  for (const auto& [op, arguments] : kTable) {
    if (op == name) return &arguments;
  }
  return nullptr;
}

bool IsMadeOfOthers(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) &&
         Mutates(op.schema()) && !FunctionalForm(op.schema());
}

OpInfo::OpInfo(const c10::OperatorHandle& op, const LoweredOps& lowered)
    : op(op), name(FullName(op.operator_name())) {
  const c10::FunctionSchema& schema = op.schema();
  for (const auto& argument : schema.arguments()) {
    if (IsWritten(argument)) mutated.push_back(static_cast<int>(arguments.size()));
    arguments.push_back(AnalyzeArgument(argument));
    has_out |= arguments.back().role == Role::kOut;
  }
  bool is_view = false;
  for (const auto& result : schema.returns()) {
    int source = -1;
    if (result.alias_info() != nullptr) {
      for (size_t i = 0; i < arguments.size(); ++i) {
        const auto* info = schema.arguments()[i].alias_info();
        if (info == nullptr || info->beforeSets() != result.alias_info()->beforeSets()) continue;
        if (info->isWrite()) source = static_cast<int>(i);
      }
      is_view |= source < 0;
    }
    results.push_back(source);
  }
  if (op.hasTag(at::Tag::inplace_view)) {
    kind = Kind::kInplaceView;
  } else if (!mutated.empty()) {
    kind = Kind::kMutating;
  } else if (is_view) {
    kind = Kind::kView;
  }
  if (kind == Kind::kInplaceView || kind == Kind::kMutating) {
    if (auto functional = FunctionalForm(schema)) {
      name = *functional;
    } else if (!HasLoweringOfItsOwn(schema, name, lowered)) {
      kind = Kind::kOnCpu;
    }
  }
  if (!std::ranges::all_of(schema.returns(), IsTensorResult)) kind = Kind::kOnCpu;

  writes_lists = kind == Kind::kMutating && !has_out &&
                 schema.arguments()[mutated[0]].type()->kind() == c10::TypeKind::ListType;
  const auto functional = FindOp(name);
  for (size_t i = 0; kind == Kind::kMutating && functional && i < arguments.size(); ++i) {
    if (arguments[i].role != Role::kTensor) continue;
    const bool is_written = std::ranges::find(mutated, i) != mutated.end();
    if (!is_written) arguments[i].sharing = SharingOf(*functional, schema.arguments()[i].name());
    if (!is_written && writes_lists && name.starts_with("aten::_foreach_"))
      arguments[i].sharing = Sharing::kSame;
    limits_sharing |= arguments[i].sharing != Sharing::kAny;
  }
  ranged_numbers = FindRangedNumbers(schema);
  divides_floats = name == "aten::celu";
  if (divides_floats || IsRoundedDivision(name)) divisor = 1;
  // Their kernels refuse negative slopes.
  if (name == "aten::elu_backward") arguments[1].negative_is_constant = true;
  if (name == "aten::leaky_relu_backward") arguments[2].negative_is_constant = true;
  is_random = op.hasTag(at::Tag::nondeterministic_seeded);
  if (const auto it = lowered.find(name); it != lowered.end()) {
    is_lowered = true;
    has_runtime_scalars = !it->second.needs_constants;
    refused_dtypes = it->second.refused_dtypes;
    refused_results = it->second.refused_results;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const auto& floats = it->second.runtime_floats;
      const std::string& argument = schema.arguments()[i].name();
      // Overloads with a tensor as `lr` have the same lowering.
      if (arguments[i].role == Role::kTensor) continue;
      if (std::ranges::find(floats, argument) == floats.end()) continue;
      arguments[i].role = Role::kScalar;
      // torch refuses negative ones.
      if (argument == "std" || argument == "sigma" || argument == "lambd")
        arguments[i].negative_is_constant = true;
      // Zero turns a term off, but for the rate of a schedule that starts there. A default is what
      // most programs have.
      const auto& standard = schema.arguments()[i].default_value();
      const bool has_default = standard && standard->isDouble();
      if (argument != "lr") arguments[i].constant = has_default ? standard->toDouble() : 0;
    }
  }
  // An ATen kernel would draw from the CPU's generator whenever the graph runs.
  if (is_random && !is_lowered) kind = Kind::kOnCpu;
  takes_cpu_indices = name.starts_with("aten::index") || name.starts_with("aten::_index_put") ||
                      name.starts_with("aten::_unsafe_index");
  if (kind == Kind::kFunctional && results.size() == 1) {
    const bool is_strided = name == "aten::empty_strided" || name == "aten::new_empty_strided";
    layout = schema.argumentIndexWithName(is_strided ? "stride" : "memory_format").value_or(-1);
  }
  if (schema.argumentIndexWithName("device") && schema.argumentIndexWithName("pin_memory")) {
    options = schema.argumentIndexWithName("layout").value_or(-1);
  }
  index = FindIndexArguments(name);
  if (index != nullptr && is_lowered) {
    arguments[index->start].role = Role::kStart;
    if (index->end >= 0) arguments[index->end].role = Role::kEnd;
  } else {
    index = nullptr;
  }
}

}  // namespace torch_xla_lite::dispatch
