// Kernels that read no value where torch's own do, which would end a graph.
//
// torch's gradients of max, min, median and nanmedian of whole tensors read whether the result is
// NaN, except on CUDA devices. torch's cov computes its degrees of freedom on the device and reads
// whether there are any; without weights they are known from the shape.
//
//   autograd_library.impl("max", Max());

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_WITHOUT_READS_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_WITHOUT_READS_H_

#include <torch/library.h>

namespace torch_xla_lite::kernels_of_torch {

torch::CppFunction Max();
torch::CppFunction Min();
torch::CppFunction Median();
torch::CppFunction NanMedian();

// For the autograd key and for the device's: inference mode skips the former.
torch::CppFunction Cov();

}  // namespace torch_xla_lite::kernels_of_torch

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_WITHOUT_READS_H_
