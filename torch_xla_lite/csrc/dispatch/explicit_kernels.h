// Kernels for the ops that need more than being recorded: they move data between devices, or change
// the storage of a tensor.
//
//   for (const ExplicitKernel& kernel : ExplicitKernels()) {
//     library.impl(kernel.name, kernel.function());
//   }
//
// They are boxed like the recorder, so that each takes a line in a table and little compile time.

#ifndef TORCH_XLA_LITE_CSRC_DISPATCH_EXPLICIT_KERNELS_H_
#define TORCH_XLA_LITE_CSRC_DISPATCH_EXPLICIT_KERNELS_H_

#include <torch/library.h>

#include <span>

namespace torch_xla_lite::dispatch {

struct ExplicitKernel {
  const char* name;  // Without "aten::": "copy_", "set_.source_Tensor".
  torch::CppFunction (*function)();
};

std::span<const ExplicitKernel> ExplicitKernels();

}  // namespace torch_xla_lite::dispatch

#endif  // TORCH_XLA_LITE_CSRC_DISPATCH_EXPLICIT_KERNELS_H_
