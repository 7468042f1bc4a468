// Ops on the storage of a tensor: as_strided, resize_, set_.

#ifndef TORCH_XLA_LITE_CSRC_EXPLICIT_STORAGE_KERNELS_H_
#define TORCH_XLA_LITE_CSRC_EXPLICIT_STORAGE_KERNELS_H_

#include <span>

#include "torch_xla_lite/csrc/explicit/explicit_kernel.h"

namespace torch_xla_lite::dispatch {

std::span<const ExplicitKernel> StorageKernels();

}  // namespace torch_xla_lite::dispatch

#endif  // TORCH_XLA_LITE_CSRC_EXPLICIT_STORAGE_KERNELS_H_
