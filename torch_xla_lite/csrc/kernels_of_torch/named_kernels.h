// All named kernels: those for copies, storages and views, and a few others.
//
//   for (const NamedKernel& kernel : NamedKernels()) {
//     library.impl(kernel.name, kernel.function());
//   }

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_NAMED_KERNELS_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_NAMED_KERNELS_H_

#include <vector>

#include "torch_xla_lite/csrc/kernels_of_torch/named_kernel.h"

namespace torch_xla_lite::kernels_of_torch {

std::vector<NamedKernel> NamedKernels();

}  // namespace torch_xla_lite::kernels_of_torch

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_NAMED_KERNELS_H_
