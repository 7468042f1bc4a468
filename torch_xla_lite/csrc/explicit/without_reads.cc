#include "torch_xla_lite/csrc/explicit/without_reads.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <limits>

namespace torch_xla_lite::dispatch {
namespace {

// torch's own kernel, which serves all devices.
void CallTorch(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  op.getComputedKernelForDispatchKey(c10::DispatchKey::AutogradCPU).callBoxed(op, keys, stack);
}

template <at::Tensor (*reduce)(const at::Tensor&)>
void Reduction(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const at::Tensor& self = stack->back().toTensor();
  if (at::GradMode::is_enabled() && self.requires_grad()) {
    stack->back() = reduce(self);
  } else {
    CallTorch(op, keys, stack);
  }
}

at::Tensor Largest(const at::Tensor& self) { return self.amax(); }
at::Tensor Smallest(const at::Tensor& self) { return self.amin(); }

// The largest of the elements that equal a value, or NaN if the value is.
at::Tensor Select(const at::Tensor& self, const at::Tensor& value) {
  const at::Tensor other =
      value.masked_fill(value.isnan().logical_not(), -std::numeric_limits<double>::infinity());
  return self.where(self.eq(value), other).amax();
}

at::Tensor Middle(const at::Tensor& self) { return Select(self, self.detach().median()); }
at::Tensor NanMiddle(const at::Tensor& self) { return Select(self, self.detach().nanmedian()); }

// Arguments: self, correction, and two optional weights.
void Covariance(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 4);
  const at::Tensor& self = arguments[0].toTensor();
  const bool is_plain = arguments[2].isNone() && arguments[3].isNone() && self.dim() <= 2 &&
                        self.scalar_type() != at::kBool;
  const at::Tensor rows = is_plain && self.dim() < 2 ? self.reshape({1, -1}) : self;
  const int64_t count = is_plain ? rows.size(1) : 0;
  const int64_t degrees_of_freedom = count - arguments[1].toInt();
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
  return torch::CppFunction::makeFromBoxedFunction<&Reduction<&Largest>>();
}

torch::CppFunction Min() {
  return torch::CppFunction::makeFromBoxedFunction<&Reduction<&Smallest>>();
}

torch::CppFunction Median() {
  return torch::CppFunction::makeFromBoxedFunction<&Reduction<&Middle>>();
}

torch::CppFunction NanMedian() {
  return torch::CppFunction::makeFromBoxedFunction<&Reduction<&NanMiddle>>();
}

torch::CppFunction Cov() { return torch::CppFunction::makeFromBoxedFunction<&Covariance>(); }

}  // namespace torch_xla_lite::dispatch
