#include "torch_xla_lite/csrc/explicit/extremes.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

namespace torch_xla_lite::dispatch {
namespace {

template <at::Tensor (at::Tensor::*reduce)(at::IntArrayRef, bool) const>
void Kernel(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const at::Tensor& self = stack->back().toTensor();
  if (at::GradMode::is_enabled() && self.requires_grad()) {
    stack->back() = (self.*reduce)({}, false);
  } else {
    // torch's own kernel, which serves all devices.
    op.getComputedKernelForDispatchKey(c10::DispatchKey::AutogradCPU).callBoxed(op, keys, stack);
  }
}

}  // namespace

torch::CppFunction Max() {
  return torch::CppFunction::makeFromBoxedFunction<&Kernel<&at::Tensor::amax>>();
}

torch::CppFunction Min() {
  return torch::CppFunction::makeFromBoxedFunction<&Kernel<&at::Tensor::amin>>();
}

}  // namespace torch_xla_lite::dispatch
