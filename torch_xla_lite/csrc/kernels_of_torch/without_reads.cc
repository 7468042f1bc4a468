#include "torch_xla_lite/csrc/kernels_of_torch/without_reads.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

namespace torch_xla_lite::kernels_of_torch {
namespace {

// torch's own kernel, which serves all devices.
void CallTorch(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  op.getComputedKernelForDispatchKey(c10::DispatchKey::AutogradCPU).callBoxed(op, keys, stack);
}

// A value of a tensor, with its gradient: in equal parts to all elements that equal it.
at::Tensor WithGradient(const at::Tensor& value, const at::Tensor& self) {
  const at::Tensor is_value = self.eq(value).logical_or(self.isnan().logical_and(value.isnan()));
  const at::Tensor mean =
      self.masked_fill(is_value.logical_not(), 0).div(is_value.sum()).sum().to(self.scalar_type());
  const at::Tensor rounding = value.sub(mean.detach());
  return mean.add(rounding.masked_fill(mean.detach().eq(value), 0));  // Infinite, too.
}

template <at::Tensor (at::Tensor::*reduce)() const>
void Reduction(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const at::Tensor& self = stack->back().toTensor();
  if (at::GradMode::is_enabled() && self.requires_grad() && self.sym_numel() > 0) {
    stack->back() = WithGradient((self.detach().*reduce)(), self);
  } else {
    CallTorch(op, keys, stack);
  }
}

// Arguments: self, correction, and two optional weights.
void Covariance(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 4);
  const at::Tensor& self = arguments[0].toTensor();
  const bool is_plain = arguments[2].isNone() && arguments[3].isNone() && self.dim() <= 2 &&
                        self.scalar_type() != at::kBool;
  const at::Tensor rows = is_plain && self.dim() < 2 ? self.reshape({1, -1}) : self;
  const c10::SymInt count = is_plain ? rows.sym_size(1) : 0;
  const c10::SymInt degrees_of_freedom = count - arguments[1].toInt();
  if (count == 0 || degrees_of_freedom <= 0) {  // What torch refuses, warns of, or must read.
    CallTorch(op, keys, stack);
    return;
  }
  const at::Tensor centred = rows.sub(rows.sum(1).div(count).unsqueeze(1));
  const at::Tensor sums = centred.mm(centred.t().conj());
  torch::jit::drop(*stack, 4);
  stack->emplace_back(sums.div(degrees_of_freedom).squeeze());
}

}  // namespace

torch::CppFunction Max() {
  return torch::CppFunction::makeFromBoxedFunction<&Reduction<&at::Tensor::max>>();
}

torch::CppFunction Min() {
  return torch::CppFunction::makeFromBoxedFunction<&Reduction<&at::Tensor::min>>();
}

torch::CppFunction Median() {
  return torch::CppFunction::makeFromBoxedFunction<&Reduction<&at::Tensor::median>>();
}

torch::CppFunction NanMedian() {
  return torch::CppFunction::makeFromBoxedFunction<&Reduction<&at::Tensor::nanmedian>>();
}

torch::CppFunction Cov() { return torch::CppFunction::makeFromBoxedFunction<&Covariance>(); }

}  // namespace torch_xla_lite::kernels_of_torch
