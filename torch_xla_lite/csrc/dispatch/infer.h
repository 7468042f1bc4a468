// The signature of a call that was not seen before: torch's own meta kernels say what comes out.
//
//   std::unique_ptr<OpSignature> signature = Infer(info, arguments, call);
//   signature->outputs;        // shapes
//   signature->runs_on_cpu;    // shapes depend on data, or the call is wrong: ask the CPU kernel
//
// Runs the very op that was called (add_ and not add), so that what it refuses is refused here: the
// error itself comes from the CPU kernel, whose words users know. May run Python; not to be called
// under the record lock.

#ifndef TORCH_XLA_LITE_CSRC_DISPATCH_INFER_H_
#define TORCH_XLA_LITE_CSRC_DISPATCH_INFER_H_

#include <memory>

#include "torch_xla_lite/csrc/dispatch/call.h"
#include "torch_xla_lite/csrc/dispatch/op_info.h"
#include "torch_xla_lite/csrc/tensor/op_signature.h"

namespace torch_xla_lite::dispatch {

std::unique_ptr<tensor::OpSignature> Infer(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
                                           const Call& call);

}  // namespace torch_xla_lite::dispatch

#endif  // TORCH_XLA_LITE_CSRC_DISPATCH_INFER_H_
