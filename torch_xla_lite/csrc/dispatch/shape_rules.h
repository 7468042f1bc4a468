// Infers the shapes of results of common ops whose meta functions in torch are written in Python.
//
// Those functions take 50 to 1,000 us for a new shape. A rule takes one, and knows only the plain
// cases: calls that may be wrong, and dtypes that torch promotes, are left to the meta function.
//
//   if (!ApplyShapeRule(info, &stack)) info.op.callBoxed(&stack);    // of meta tensors

#ifndef TORCH_XLA_LITE_CSRC_DISPATCH_SHAPE_RULES_H_
#define TORCH_XLA_LITE_CSRC_DISPATCH_SHAPE_RULES_H_

#include <ATen/core/stack.h>

#include "torch_xla_lite/csrc/dispatch/op_info.h"

namespace torch_xla_lite::dispatch {

// Replaces the arguments on the stack, on meta or numbers on the CPU, by the results on meta.
// False, and the stack is as it was, if the op has no rule or the rule does not cover the call.
bool ApplyShapeRule(const OpInfo& info, torch::jit::Stack* stack);

}  // namespace torch_xla_lite::dispatch

#endif  // TORCH_XLA_LITE_CSRC_DISPATCH_SHAPE_RULES_H_
