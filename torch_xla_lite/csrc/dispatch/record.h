// The recorder: what happens on `a + b` when a and b are on jax.
//
//   stack -> Call (words, operands, scalars) -> OpSignature (found, or inferred once) -> Node
//         -> tensors
//
// One boxed kernel serves all ops; what differs between them it reads from their schemas
// (dispatch/op_info.h). Nothing is computed here: the node waits for a sync (runtime/runtime.h).
//
//   library.impl("add.Tensor", torch::CppFunction::makeFromBoxedFunctor(
//                                  std::make_unique<RecordKernel>()));
//
// Thread-safe: the record lock is held from the lookup of the signature until the results exist.

#ifndef TORCH_XLA_LITE_CSRC_DISPATCH_RECORD_H_
#define TORCH_XLA_LITE_CSRC_DISPATCH_RECORD_H_

#include <ATen/core/boxing/OperatorKernel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "torch_xla_lite/csrc/dispatch/op_info.h"

namespace torch_xla_lite::dispatch {

class RecordKernel final : public c10::OperatorKernel {
 public:
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack);

 private:
  // Read on the first call: most of torch's ops are never called.
  std::atomic<const OpInfo*> info_ = nullptr;
};

// Which ops have lowerings of their own. To be set before the first op is recorded.
void SetLoweredOps(LoweredOps lowered);
// One more. An op that was called before keeps what was read of it then.
void AddLoweredOp(const std::string& name, bool needs_constants);

// Raises for a tensor that is not on jax, and for one of which an element stands for several:
// writing would give it the last value that XLA happens to write. `op` is for the message.
void CheckWritable(const at::Tensor& tensor, const std::string& op, bool allow_expanded = false);

// With a hook, each node remembers the number that it gives: where in the user's program the op was
// called. Without one (nullptr, the default), recording does not look.
using SourceHook = uint32_t (*)();
void SetSourceHook(SourceHook hook);

}  // namespace torch_xla_lite::dispatch

#endif  // TORCH_XLA_LITE_CSRC_DISPATCH_RECORD_H_
