// Kept kernels (kept_kernel.h) that are not structured ones: torch declares them as stubs, which
// choose the kernel for the processor.

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_KEPT_STUB_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_KEPT_STUB_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <memory>
#include <string_view>

#include "torch_xla_lite/csrc/interpreter/kept_kernel.h"

namespace torch_xla_lite::interpreter {

// nullptr for other ops and dtypes, and where torch has other stubs than on x86-64.
std::unique_ptr<KeptKernel> KeepStub(std::string_view op, const torch::jit::Stack& arguments,
                                     const at::Tensor& out);

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_KEPT_STUB_H_
