#include "torch_xla_lite/csrc/kernels_of_torch/sparse_gradient.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

namespace torch_xla_lite::kernels_of_torch {
namespace {

void Kernel(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const auto arguments = torch::jit::last(*stack, schema.arguments().size());
  const bool is_sparse = arguments[*schema.argumentIndexWithName("sparse")].toBool();
  TORCH_CHECK_NOT_IMPLEMENTED(
      !is_sparse || !at::GradMode::is_enabled() || !arguments[0].toTensor().requires_grad(),
      "device jax has dense tensors only, and this gradient would be sparse (in ",
      op.operator_name().name, ").\nMake the gradient dense:  torch.nn.Embedding(sparse=False)");
  // torch's own kernel, which serves all devices.
  op.getComputedKernelForDispatchKey(c10::DispatchKey::AutogradCPU).callBoxed(op, keys, stack);
}

}  // namespace

torch::CppFunction RefuseSparseGradient() {
  return torch::CppFunction::makeFromBoxedFunction<&Kernel>();
}

}  // namespace torch_xla_lite::kernels_of_torch
