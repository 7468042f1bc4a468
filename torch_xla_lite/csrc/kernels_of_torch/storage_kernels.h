// Ops on the storage of a tensor: as_strided, resize_, set_.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_STORAGE_KERNELS_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_STORAGE_KERNELS_H_

#include <span>

#include "torch_xla_lite/csrc/kernels_of_torch/named_kernel.h"

namespace torch_xla_lite::kernels_of_torch {

std::span<const NamedKernel> StorageKernels();

}  // namespace torch_xla_lite::kernels_of_torch

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_STORAGE_KERNELS_H_
