#include "torch_xla_lite/csrc/explicit/extremes.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>

namespace torch_xla_lite::dispatch {
namespace {

template <at::Tensor (*reduce)(const at::Tensor&, at::IntArrayRef, bool)>
void Kernel(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const at::Tensor& self = stack->back().toTensor();
  if (at::GradMode::is_enabled() && self.requires_grad()) {
    stack->back() = reduce(self, {}, false);
  } else {
    // torch's own kernel, which serves all devices.
    op.getComputedKernelForDispatchKey(c10::DispatchKey::AutogradCPU).callBoxed(op, keys, stack);
  }
}

}  // namespace

torch::CppFunction Max() { return torch::CppFunction::makeFromBoxedFunction<&Kernel<at::amax>>(); }

torch::CppFunction Min() { return torch::CppFunction::makeFromBoxedFunction<&Kernel<at::amin>>(); }

}  // namespace torch_xla_lite::dispatch
