// Copies within the device, to it and from it: copy_, to, clone, item.

#ifndef TORCH_XLA_LITE_CSRC_EXPLICIT_COPIES_H_
#define TORCH_XLA_LITE_CSRC_EXPLICIT_COPIES_H_

#include <span>

#include "torch_xla_lite/csrc/explicit/explicit_kernel.h"

namespace torch_xla_lite::dispatch {

std::span<const ExplicitKernel> CopyKernels();

}  // namespace torch_xla_lite::dispatch

#endif  // TORCH_XLA_LITE_CSRC_EXPLICIT_COPIES_H_
