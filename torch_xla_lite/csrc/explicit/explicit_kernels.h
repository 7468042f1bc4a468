// All explicit kernels: those for copies, storages and views, and a few others.
//
//   for (const ExplicitKernel& kernel : ExplicitKernels()) {
//     library.impl(kernel.name, kernel.function());
//   }

#ifndef TORCH_XLA_LITE_CSRC_EXPLICIT_EXPLICIT_KERNELS_H_
#define TORCH_XLA_LITE_CSRC_EXPLICIT_EXPLICIT_KERNELS_H_

#include <vector>

#include "torch_xla_lite/csrc/explicit/explicit_kernel.h"

namespace torch_xla_lite::dispatch {

std::vector<ExplicitKernel> ExplicitKernels();

}  // namespace torch_xla_lite::dispatch

#endif  // TORCH_XLA_LITE_CSRC_EXPLICIT_EXPLICIT_KERNELS_H_
