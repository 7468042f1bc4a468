// Copies within the device, to it and from it: copy_, to, clone, item.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_COPIES_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_COPIES_H_

#include <span>

#include "torch_xla_lite/csrc/kernels_of_torch/named_kernel.h"

namespace torch_xla_lite::kernels_of_torch {

std::span<const NamedKernel> CopyKernels();

}  // namespace torch_xla_lite::kernels_of_torch

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_COPIES_H_
