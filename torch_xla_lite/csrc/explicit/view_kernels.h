// Views that are not one step of the recorder: aliases, and many parts of a tensor.

#ifndef TORCH_XLA_LITE_CSRC_EXPLICIT_VIEW_KERNELS_H_
#define TORCH_XLA_LITE_CSRC_EXPLICIT_VIEW_KERNELS_H_

#include <span>

#include "torch_xla_lite/csrc/explicit/explicit_kernel.h"

namespace torch_xla_lite::dispatch {

std::span<const ExplicitKernel> ViewKernels();

}  // namespace torch_xla_lite::dispatch

#endif  // TORCH_XLA_LITE_CSRC_EXPLICIT_VIEW_KERNELS_H_
