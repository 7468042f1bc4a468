#include "torch_xla_lite/csrc/interpreter/kept_call.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/stack.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "torch_xla_lite/csrc/interpreter/numbers.h"
#include "torch_xla_lite/csrc/ops/op_name.h"

namespace torch_xla_lite::interpreter {
namespace {

using c10::ScalarType;
using dispatch::CallPlan;

// Whether torch converts a number to the dtype of the tensors, and not the tensors to another one.
bool Fits(ScalarType number, ScalarType tensors) {
  if (tensors == ScalarType::Float || tensors == ScalarType::Double) {
    return number == ScalarType::Double || number == ScalarType::Long;
  }
  return number == ScalarType::Long && (tensors == ScalarType::Long || tensors == ScalarType::Int);
}

// The op that compares with a tensor, of one that compares with a number; otherwise nothing.
std::string ComparisonOfTensors(std::string_view op) {
  for (const std::string_view name : {"eq", "ge", "gt", "le", "lt", "ne"}) {
    const std::string full = "aten::" + std::string(name);
    if (op == full + ".Scalar") return full + ".Tensor";
  }
  return "";
}

// The dtype that all operands have; Undefined if they have several, or if the result does not have
// it, and is no answer of a comparison.
ScalarType CommonDtype(std::span<const at::Tensor> operands, const at::Tensor& result) {
  const ScalarType first = operands[0].scalar_type();
  const bool is_common = std::ranges::all_of(
      operands, [&](const at::Tensor& operand) { return operand.scalar_type() == first; });
  const bool fits = result.scalar_type() == first || result.scalar_type() == ScalarType::Bool;
  return is_common && fits ? first : ScalarType::Undefined;
}

// Whether the constant numbers among the arguments fit the tensors.
bool ConstantsFit(const torch::jit::Stack& arguments, ScalarType common) {
  return std::ranges::all_of(arguments, [&](const c10::IValue& argument) {
    if (!argument.isTensor() || !argument.toTensor().defined()) return true;
    const at::TensorImpl* const tensor = argument.toTensor().unsafeGetTensorImpl();
    return !tensor->is_wrapped_number() || Fits(argument.toTensor().scalar_type(), common);
  });
}

at::Tensor WrappedNumber(const c10::Scalar& value) {
  at::Tensor tensor = at::detail::scalar_tensor_static(value, value.type(), at::kCPU);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

template <typename From>
void Store(From value, const at::Tensor& tensor) {
  void* const data = tensor.mutable_data_ptr();
  switch (tensor.scalar_type()) {
    case ScalarType::Float:
      *static_cast<float*>(data) = static_cast<float>(value);
      break;
    case ScalarType::Double:
      *static_cast<double*>(data) = static_cast<double>(value);
      break;
    case ScalarType::Long:
      *static_cast<int64_t*>(data) = static_cast<int64_t>(value);
      break;
    default:
      *static_cast<int32_t*>(data) = static_cast<int32_t>(value);
  }
}

}  // namespace

std::optional<KeptCall::Number> KeptCall::NumberOf(const CallPlan::RuntimeNumber& number,
                                                   ScalarType dtype, ScalarType common) {
  const ScalarType stored = StoredType(dtype);
  if (!number.is_tensor) {
    const bool is_known = stored == ScalarType::Double || stored == ScalarType::Long;
    return is_known ? std::optional(Number{number.argument, stored, {}}) : std::nullopt;
  }
  if (!number.wrapped || !Fits(stored, common)) return std::nullopt;
  at::Tensor tensor = at::detail::scalar_tensor_static(1, common, at::kCPU);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return Number{number.argument, stored, std::move(tensor)};
}

std::unique_ptr<KeptCall> KeptCall::Keep(const dispatch::AtenCall& call,
                                         std::span<const ScalarType> scalar_dtypes,
                                         std::span<const at::Tensor> operands,
                                         const at::Tensor& result) {
  auto runtime = call.plan().RuntimeNumbers();
  if (!call.is_plain() || !runtime || operands.empty()) return nullptr;
  std::string name = dispatch::FullName(call.op().operator_name());
  const std::string comparison = ComparisonOfTensors(name);
  if (!comparison.empty()) {
    for (CallPlan::RuntimeNumber& number : *runtime) number.is_tensor = number.wrapped = true;
  }
  // The first operand of `where` is a condition.
  const auto values = operands.subspan(name == "aten::where.self" ? 1 : 0);
  if (values.empty()) return nullptr;
  const ScalarType common = CommonDtype(values, result);
  if (common == ScalarType::Undefined) return nullptr;
  auto kept = std::make_unique<KeptCall>();
  // Any value: what is made of it is replaced.
  const double one = 1;
  std::vector<dispatch::ScalarView> views(runtime->size(), {ScalarType::Double, &one});
  for (size_t i = 0; i < runtime->size(); ++i) {
    auto number = NumberOf((*runtime)[i], scalar_dtypes[i], common);
    if (!number) return nullptr;
    kept->numbers_.push_back(*std::move(number));
  }
  torch::jit::Stack arguments;
  call.plan().Fill(operands, views, &arguments);
  for (const Number& number : kept->numbers_) {
    c10::IValue& argument = arguments[number.argument];
    if (number.tensor.defined()) {
      argument = number.tensor;
    } else if (number.stored == ScalarType::Long) {
      argument = c10::Scalar(int64_t{1});
    }
  }
  if (!comparison.empty()) {
    name = comparison;
    if (arguments[1].isScalar()) arguments[1] = WrappedNumber(arguments[1].toScalar());
  }
  if (!ConstantsFit(arguments, common)) return nullptr;
  kept->kernel_ = KeepKernel(name, std::move(arguments), result);
  return kept->kernel_ == nullptr ? nullptr : std::move(kept);
}

void KeptCall::Run(std::span<const uint64_t> scalars) {
  for (size_t i = 0; i < numbers_.size(); ++i) {
    const Number& number = numbers_[i];
    const auto real = std::bit_cast<double>(scalars[i]);
    const auto integer = static_cast<int64_t>(scalars[i]);
    const bool is_real = number.stored == ScalarType::Double;
    if (!number.tensor.defined()) {
      kernel_->SetNumber(number.argument, is_real ? c10::Scalar(real) : c10::Scalar(integer));
    } else if (is_real) {
      Store(real, number.tensor);
    } else {
      Store(integer, number.tensor);
    }
  }
  kernel_->Run();
}

}  // namespace torch_xla_lite::interpreter
