// Copies within the device, to it and from it: copy_, to, clone, item.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_COPIES_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_COPIES_H_

#include <span>

#include "torch_xla_lite/csrc/kernels_of_torch/explicit_kernel.h"

namespace torch_xla_lite::kernels_of_torch {

std::span<const ExplicitKernel> CopyKernels();

}  // namespace torch_xla_lite::kernels_of_torch

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_COPIES_H_
