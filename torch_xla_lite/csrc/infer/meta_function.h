// Calls torch's meta functions in C++, which know the shapes and dtypes of results.
//
//   if (!CallMetaFunction(op, &stack)) op.callBoxed(&stack);    // aten::add.Tensor of meta tensors
//
// torch's dispatcher calls functions in Python instead, which take 50 to 1,000 us, where these take
// one, and raise errors of their own.

#ifndef TORCH_XLA_LITE_CSRC_INFER_META_FUNCTION_H_
#define TORCH_XLA_LITE_CSRC_INFER_META_FUNCTION_H_

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace torch_xla_lite::infer {

// Replaces the arguments of the functional op on the stack, on meta or numbers on the CPU, by its
// results on meta. False, and the stack is as it was, if the op has no such function, is none
// of numbers whose form for tensors has one (aten::add.Scalar), and is none of lists whose form for
// an item has one (aten::_foreach_add.List). Raises torch's error for a wrong call.
bool CallMetaFunction(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace torch_xla_lite::infer

#endif  // TORCH_XLA_LITE_CSRC_INFER_META_FUNCTION_H_
