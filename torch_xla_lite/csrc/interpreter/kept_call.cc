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
using ops::CallPlan;

// Whether torch converts a number to the dtype of the tensors, and not the tensors to another one.
bool Fits(ScalarType number, ScalarType tensors) {
  if (tensors == ScalarType::Float || tensors == ScalarType::Double) {
    return number == ScalarType::Double || number == ScalarType::Long;
  }
  return number == ScalarType::Long && (tensors == ScalarType::Long || tensors == ScalarType::Int);
}

// The dtype that all operands have; Undefined if they have several, or if the result does not have
// it, and is no answer of a comparison.
ScalarType CommonDtype(const Part& part, const at::Tensor& result) {
  ScalarType common = ScalarType::Undefined;
  // The first argument of `where` is a condition.
  for (size_t i = part.op == "aten::where.self" ? 1 : 0; i < part.arguments.size(); ++i) {
    const c10::IValue& argument = part.arguments[i];
    const bool is_operand = argument.isTensor() && argument.toTensor().defined() &&
                            !argument.toTensor().unsafeGetTensorImpl()->is_wrapped_number();
    if (!is_operand) continue;
    const ScalarType dtype = argument.toTensor().scalar_type();
    if (common != ScalarType::Undefined && common != dtype) return ScalarType::Undefined;
    common = dtype;
  }
  const bool fits = result.scalar_type() == common || result.scalar_type() == ScalarType::Bool;
  return fits ? common : ScalarType::Undefined;
}

// Whether the numbers among the arguments fit the tensors.
bool NumbersFit(const torch::jit::Stack& arguments, ScalarType common) {
  return std::ranges::all_of(arguments, [&](const c10::IValue& argument) {
    if (!argument.isTensor() || !argument.toTensor().defined()) return true;
    const at::Tensor& tensor = argument.toTensor();
    const ScalarType dtype = tensor.scalar_type();
    return !tensor.unsafeGetTensorImpl()->is_wrapped_number() || dtype == common ||
           Fits(dtype, common);
  });
}

// Whether a kernel may take an operand out of its loop, which is then another one in the next run:
// those of 16-bit floats do so with an operand of one element.
bool ChangesItsLoop(const torch::jit::Stack& arguments, ScalarType common) {
  return c10::isReducedFloatingType(common) &&
         std::ranges::any_of(arguments, [](const c10::IValue& argument) {
           return argument.isTensor() && argument.toTensor().defined() &&
                  argument.toTensor().numel() == 1;
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

std::optional<KeptCall::Number> KeptCall::NumberOf(const Part::Number& number, ScalarType dtype,
                                                   ScalarType common) {
  const ScalarType stored = StoredType(dtype);
  if (!number.is_tensor) {
    const bool is_known = stored == ScalarType::Double || stored == ScalarType::Long;
    return is_known ? std::optional(Number{number.argument, number.scalar, stored, {}})
                    : std::nullopt;
  }
  if (!number.wrapped || !Fits(stored, common)) return std::nullopt;
  at::Tensor tensor = at::detail::scalar_tensor_static(1, common, at::kCPU);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return Number{number.argument, number.scalar, stored, std::move(tensor)};
}

std::vector<Part> KeptCall::PartsOf(const aten::AtenCall& call,
                                    std::span<const at::Tensor> operands) {
  const auto numbers = call.plan().RuntimeNumbers();
  if (!call.is_plain() || !numbers || operands.empty()) return {};
  // Any value: what is made of it is replaced.
  const double one = 1;
  const std::vector<ops::ScalarView> views(numbers->size(), {ScalarType::Double, &one});
  torch::jit::Stack arguments;
  call.plan().Fill(operands, views, &arguments);
  return interpreter::PartsOf(ops::FullName(call.op().operator_name()), arguments, *numbers);
}

std::unique_ptr<KeptCall> KeptCall::Keep(const Part& part,
                                         std::span<const ScalarType> scalar_dtypes,
                                         const at::Tensor& result) {
  const ScalarType common = CommonDtype(part, result);
  if (common == ScalarType::Undefined) return nullptr;
  // The argument that may be a number.
  const std::optional<size_t> other =
      part.op.ends_with(".Tensor") ? std::optional(1) : std::nullopt;
  torch::jit::Stack arguments = part.arguments;
  auto kept = std::make_unique<KeptCall>();
  for (Part::Number number : part.numbers) {
    if (number.argument == other && !number.is_tensor) number.is_tensor = number.wrapped = true;
    auto known = NumberOf(number, scalar_dtypes[number.scalar], common);
    if (!known) return nullptr;
    kept->numbers_.push_back(*std::move(known));
  }
  for (const Number& number : kept->numbers_) {
    c10::IValue& argument = arguments[number.argument];
    if (number.tensor.defined()) {
      argument = number.tensor;
    } else if (number.stored == ScalarType::Long) {
      argument = c10::Scalar(int64_t{1});
    }
  }
  if (other && arguments[*other].isScalar()) {
    arguments[*other] = WrappedNumber(arguments[*other].toScalar());
  }
  if (!NumbersFit(arguments, common) || ChangesItsLoop(arguments, common)) return nullptr;
  const at::Tensor out = part.is_matrix ? result.flatten(0, -2) : result;
  kept->kernel_ = KeepKernel(part.op, std::move(arguments), out);
  return kept->kernel_ == nullptr ? nullptr : std::move(kept);
}

void KeptCall::Run(std::span<const uint64_t> scalars) {
  for (const Number& number : numbers_) {
    const uint64_t word = scalars[number.scalar];
    const auto real = std::bit_cast<double>(word);
    const auto integer = static_cast<int64_t>(word);
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
