#include "torch_xla_lite/csrc/infer/meta_function.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/jit_type.h>
#include <meta_functions.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/ops/op_name.h"

namespace torch_xla_lite::infer {
namespace {

using torch::jit::Stack;

struct MetaFunction {
  std::string_view op;
  c10::KernelFunction (*kernel)();
};

// Sorted by name.
constexpr auto kFunctions = std::to_array<MetaFunction>({
#define FUNCTION(op, function, ...)                                         \
  {op, [] {                                                                 \
     return c10::KernelFunction::makeFromUnboxedRuntimeFunction(            \
         static_cast<std::add_pointer_t<__VA_ARGS__>>(at::meta::function)); \
   }},
    TORCH_META_FUNCTIONS(FUNCTION)
#undef FUNCTION
});
static_assert(std::ranges::is_sorted(kFunctions, {}, &MetaFunction::op));

// The functions of all overloads of an op, "aten::add".
std::span<const MetaFunction> FindAll(const std::string& name) {
  const auto base = [](const MetaFunction& function) {
    return function.op.substr(0, function.op.find('.'));
  };
  // Not equal_range: clang 14 cannot compile what it returns.
  return {std::ranges::lower_bound(kFunctions, std::string_view(name), {}, base),
          std::ranges::upper_bound(kFunctions, std::string_view(name), {}, base)};
}

// A meta function, called with the arguments of an op: numbers become tensors, as torch makes them,
// and what the op does not have is the default.
class Adapted {
 public:
  // The function that takes the arguments of `op`, or the items of its lists.
  static std::optional<Adapted> Find(const c10::OperatorHandle& op, bool takes_items);

  void Call(Stack* arguments) const {
    const auto& wanted = op_.schema().arguments();
    for (size_t i = 0; i < arguments->size(); ++i) {
      c10::IValue& value = (*arguments)[i];
      if (value.isScalar() && wanted[i].type()->kind() == c10::TypeKind::TensorType)
        value = at::native::wrapped_scalar_tensor(value.toScalar());
    }
    for (size_t i = arguments->size(); i < wanted.size(); ++i)
      arguments->push_back(*wanted[i].default_value());
    kernel_.callBoxed(op_, {}, arguments);
  }

 private:
  enum class Fit : uint8_t { kNone, kConverts, kSame };

  explicit Adapted(const MetaFunction& function)
      : op_(*ops::FindOp(function.op)), kernel_(function.kernel()) {}

  Fit FitOf(c10::ArrayRef<c10::Argument> given, bool takes_items) const;

  c10::OperatorHandle op_;
  c10::KernelFunction kernel_;
};

Adapted::Fit Adapted::FitOf(c10::ArrayRef<c10::Argument> given, bool takes_items) const {
  const auto& wanted = op_.schema().arguments();
  if (given.size() > wanted.size()) return Fit::kNone;
  Fit fit = Fit::kSame;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (i >= given.size()) {
      if (!wanted[i].default_value()) return Fit::kNone;
      continue;
    }
    c10::TypePtr type = given[i].type();
    if (takes_items && type->kind() == c10::TypeKind::ListType) type = type->containedType(0);
    if (*type == *wanted[i].type()) continue;
    const bool is_number = type->kind() == c10::TypeKind::NumberType;
    if (!is_number || wanted[i].type()->kind() != c10::TypeKind::TensorType) return Fit::kNone;
    fit = Fit::kConverts;
  }
  return fit;
}

constexpr std::string_view kOfLists = "aten::_foreach_";

std::optional<Adapted> Adapted::Find(const c10::OperatorHandle& op, bool takes_items) {
  std::string name = op.operator_name().name;
  if (takes_items) name.replace(0, kOfLists.size(), "aten::");
  std::optional<Adapted> converting;
  for (const MetaFunction& function : FindAll(name)) {
    Adapted found(function);
    const Fit fit = found.FitOf(op.schema().arguments(), takes_items);
    if (fit == Fit::kSame) return found;
    if (fit == Fit::kConverts) converting = std::move(found);
  }
  return converting;
}

// The same, found once for each op.
const std::optional<Adapted>& FindOnce(const c10::OperatorHandle& op, bool takes_items) {
  thread_local std::unordered_map<c10::OperatorName, std::optional<Adapted>> found;
  const auto entry = found.find(op.operator_name());
  if (entry != found.end()) return entry->second;
  return found.emplace(op.operator_name(), Adapted::Find(op, takes_items)).first->second;
}

// The number of items that all lists among the arguments have.
std::optional<size_t> CountItems(const Stack& arguments) {
  std::optional<size_t> count;
  for (const c10::IValue& value : arguments) {
    if (!value.isList()) continue;
    const size_t own = value.toListRef().size();
    if (count.value_or(own) != own) return std::nullopt;
    count = own;
  }
  return count;
}

}  // namespace

bool CallMetaFunction(const c10::OperatorHandle& op, Stack* stack) {
  const bool takes_items = op.operator_name().name.starts_with(kOfLists);
  const auto& function = FindOnce(op, takes_items);
  if (!function) return false;
  if (!takes_items) {
    function->Call(stack);
    return true;
  }
  const auto count = CountItems(*stack);
  if (!count) return false;
  std::vector<at::Tensor> results;
  for (size_t k = 0; k < *count; ++k) {
    Stack item;
    for (const c10::IValue& value : *stack)
      item.push_back(value.isList() ? value.toListRef()[k] : value);
    function->Call(&item);
    results.push_back(item.front().toTensor());
  }
  *stack = {c10::IValue(std::move(results))};
  return true;
}

}  // namespace torch_xla_lite::infer
