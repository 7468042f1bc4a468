// Finds numbers that torch's CPU kernels refuse: those that the dtype cannot hold, and zero as the
// divisor of integers.
//
//   NumbersFit(info, arguments, c10::ScalarType::Byte);     // x.fill_(300): false
//   NumbersFit(info, arguments, c10::ScalarType::Half);     // x.add(x, alpha=70000.): false
//
// XLA would wrap such a number around, take it for infinity, or divide by zero without an error. A
// call that has one is left to the CPU kernel, which raises torch's own error, or knows what to do.
// The divisors that are tensors are checked when the graph runs (lowering/base/checks.py).

#ifndef TORCH_XLA_LITE_CSRC_INFER_NUMBERS_H_
#define TORCH_XLA_LITE_CSRC_INFER_NUMBERS_H_

#include "torch_xla_lite/csrc/ops/op_info.h"

namespace torch_xla_lite::infer {

// Whether the numbers among the arguments have a meaning in `dtype`, that of the first result.
bool NumbersFit(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
                c10::ScalarType dtype);

}  // namespace torch_xla_lite::infer

#endif  // TORCH_XLA_LITE_CSRC_INFER_NUMBERS_H_
