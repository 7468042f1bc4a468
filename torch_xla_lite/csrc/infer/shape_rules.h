// Infers the shapes of results without torch's meta functions in Python.
//
// Those take 50 to 1,000 us for a new shape, and the first of them 0.4 s, because it imports sympy.
// torch's functions in C++ take one (meta_function.h). Common ops that have none have a rule here,
// which knows only the plain cases: calls that may be wrong, and dtypes that torch promotes, are
// left to the function in Python.
//
//   if (!ApplyShapeRule(info, &stack)) info.op.callBoxed(&stack);    // of meta tensors

#ifndef TORCH_XLA_LITE_CSRC_INFER_SHAPE_RULES_H_
#define TORCH_XLA_LITE_CSRC_INFER_SHAPE_RULES_H_

#include <ATen/core/stack.h>

#include "torch_xla_lite/csrc/ops/op_info.h"

namespace torch_xla_lite::infer {

// Replaces the arguments on the stack, on meta or numbers on the CPU, by the results on meta.
// False, and the stack is as it was, if the op has neither function nor rule, or the rule does not
// cover the call. Raises torch's error for a wrong call.
bool ApplyShapeRule(const ops::OpInfo& info, torch::jit::Stack* stack);

}  // namespace torch_xla_lite::infer

#endif  // TORCH_XLA_LITE_CSRC_INFER_SHAPE_RULES_H_
