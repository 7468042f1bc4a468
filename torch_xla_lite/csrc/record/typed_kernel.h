// Typed kernels: kernels of common ops that take the arguments as C++ values.
//
// torch boxes the arguments of a call of a boxed kernel: it copies each into an IValue. A copy of a
// tensor that only Python refers to takes Python's lock twice, when it is made and when it is
// dropped; so does each question of autograd's kernels whether a tensor has a forward gradient.
// That was a third of the time to record `a + b`. Typed kernels record arguments that they borrow,
// and go past autograd if no argument needs a gradient. One template serves all ops that have the
// same types.
//
//   if (!RegisterTypedKernels(op, "aten::add.Tensor", backend, autograd)) ...  // boxed

#ifndef TORCH_XLA_LITE_CSRC_RECORD_TYPED_KERNEL_H_
#define TORCH_XLA_LITE_CSRC_RECORD_TYPED_KERNEL_H_

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <string>

namespace torch_xla_lite::record {

// Registers a typed recorder and a typed kernel of autograd. False, and nothing is registered, if
// the op is not among the common ones, or has other C++ types.
bool RegisterTypedKernels(const c10::OperatorHandle& op, const std::string& name,
                          torch::Library* backend, torch::Library* autograd);

}  // namespace torch_xla_lite::record

#endif  // TORCH_XLA_LITE_CSRC_RECORD_TYPED_KERNEL_H_
