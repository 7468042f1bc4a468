#include "torch_xla_lite/csrc/kernels_of_torch/linear.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace torch_xla_lite::kernels_of_torch {
namespace {

// torch has no derivative of linear for dual numbers, and no second one for complex numbers.
bool IsDualOrComplex(const c10::IValue& argument) {
  return argument.isTensor() && argument.toTensor().defined() &&
         (argument.toTensor().is_complex() || argument.toTensor()._fw_grad(/*level=*/0).defined());
}

class LinearKernel final : public c10::OperatorKernel {
 public:
  LinearKernel(c10::SafeKernelFunction whole, c10::SafeKernelFunction composite)
      : whole_(std::move(whole)), composite_(std::move(composite)) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) {
    const bool is_special = std::ranges::any_of(torch::jit::last(*stack, 3), IsDualOrComplex);
    (is_special ? composite_ : whole_).callBoxed(op, keys, stack);
  }

 private:
  c10::SafeKernelFunction whole_;
  c10::SafeKernelFunction composite_;
};

}  // namespace

torch::CppFunction Linear() {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::linear", "");
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<LinearKernel>(
      op.getComputedKernelForDispatchKey(c10::DispatchKey::AutogradPrivateUse1),
      // On the CPU it is made of other ops.
      op.getComputedKernelForDispatchKey(c10::DispatchKey::AutogradCPU)));
}

}  // namespace torch_xla_lite::kernels_of_torch
