// Views that are not one step of the recorder: aliases, and many parts of a tensor.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_VIEW_KERNELS_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_VIEW_KERNELS_H_

#include <span>

#include "torch_xla_lite/csrc/kernels_of_torch/named_kernel.h"

namespace torch_xla_lite::kernels_of_torch {

std::span<const NamedKernel> ViewKernels();

}  // namespace torch_xla_lite::kernels_of_torch

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_VIEW_KERNELS_H_
