// Infers the signature of a new call: runs torch's meta kernel for the shapes of the results.
//
//   ir::Ref<OpSignature> signature = Infer(info, arguments, call);
//   signature->outputs;        // shapes
//   signature->runs_on_cpu;    // shapes depend on data, or the call is invalid: run the CPU kernel
//
// Runs the op that was called (add_ and not add), so that invalid calls are found here; the error
// itself is then raised by the CPU kernel, so that users see the message they know. May run Python:
// do not call it under the record lock.

#ifndef TORCH_XLA_LITE_CSRC_INFER_INFER_H_
#define TORCH_XLA_LITE_CSRC_INFER_INFER_H_

#include "torch_xla_lite/csrc/ops/call.h"
#include "torch_xla_lite/csrc/ops/op_info.h"
#include "torch_xla_lite/csrc/tensor/op_signature.h"

namespace torch_xla_lite::infer {

ir::Ref<tensor::OpSignature> Infer(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
                                   const ops::Call& call);

// Raises torch's error for an invalid call, as far as its meta kernel knows.
void CheckCall(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments);

}  // namespace torch_xla_lite::infer

#endif  // TORCH_XLA_LITE_CSRC_INFER_INFER_H_
