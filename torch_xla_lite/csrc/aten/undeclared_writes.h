// Finds arguments that a kernel of another library writes to although its schema does not say so.
//
// A value of a graph never changes, and several tensors may share it, so such a write would change
// tensors that have nothing to do with the call. It is undone, and is an error.
//
//   if (IsForeign(op)) CallChecked(op, &stack);    // costs a copy of the arguments

#ifndef TORCH_XLA_LITE_CSRC_ATEN_UNDECLARED_WRITES_H_
#define TORCH_XLA_LITE_CSRC_ATEN_UNDECLARED_WRITES_H_

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace torch_xla_lite::aten {

// Whether an op is none of torch's own.
bool IsForeign(const c10::OperatorHandle& op);

// Calls the op. Raises if it wrote to a tensor that it did not declare, which then has its old
// elements again.
void CallChecked(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace torch_xla_lite::aten

#endif  // TORCH_XLA_LITE_CSRC_ATEN_UNDECLARED_WRITES_H_
