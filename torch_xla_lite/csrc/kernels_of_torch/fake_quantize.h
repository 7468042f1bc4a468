// The kernel of _fused_moving_avg_obs_fq_helper, by which torch.ao.quantization trains.
//
// It observes the range of a tensor and rounds it as quantization will. At its first call it sizes
// the statistics of channels; then it is recorded.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_FAKE_QUANTIZE_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_FAKE_QUANTIZE_H_

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace torch_xla_lite::kernels_of_torch {

// (Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor(a!) running_min,
//  Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, float averaging_const,
//  int quant_min, int quant_max, int ch_axis, bool per_row_fake_quant, bool symmetric_quant)
//     -> (Tensor output, Tensor mask)
void ObserveAndFakeQuantize(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                            torch::jit::Stack* stack);

}  // namespace torch_xla_lite::kernels_of_torch

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_FAKE_QUANTIZE_H_
