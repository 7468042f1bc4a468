// Finds calls that torch's CPU kernels refuse although its meta functions accept them.
//
//   IsRefused(info, {floats, ints}, ..., signature);     // aten::mm of two dtypes: true
//
// A lowering would compute something: a product of floats and integers, the softmax over another
// dimension. Such a call is left to the CPU kernel, which raises torch's own error.

#ifndef TORCH_XLA_LITE_CSRC_INFER_REFUSED_CALLS_H_
#define TORCH_XLA_LITE_CSRC_INFER_REFUSED_CALLS_H_

#include <ATen/core/ivalue.h>

#include "torch_xla_lite/csrc/ops/op_info.h"
#include "torch_xla_lite/csrc/tensor/op_signature.h"

namespace torch_xla_lite::ir {
class Shape;
}

namespace torch_xla_lite::infer {

// Whether the CPU kernel must run the call. `operand` is the shape of the first tensor on jax, or
// null.
bool IsRefused(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
               const ir::Shape* operand, const tensor::OpSignature& signature);

}  // namespace torch_xla_lite::infer

#endif  // TORCH_XLA_LITE_CSRC_INFER_REFUSED_CALLS_H_
