// The autograd kernels of torch.max and torch.min of whole tensors, whose gradients read no value.
//
// torch's gradient reads whether the result is NaN, except on CUDA devices; so it would end a
// graph. With gradients these kernels call amax and amin, whose gradient is the same but for NaN:
// there all of it is NaN.
//
//   autograd_library.impl("max", Max());

#ifndef TORCH_XLA_LITE_CSRC_EXPLICIT_EXTREMES_H_
#define TORCH_XLA_LITE_CSRC_EXPLICIT_EXTREMES_H_

#include <torch/library.h>

namespace torch_xla_lite::dispatch {

torch::CppFunction Max();
torch::CppFunction Min();

}  // namespace torch_xla_lite::dispatch

#endif  // TORCH_XLA_LITE_CSRC_EXPLICIT_EXTREMES_H_
