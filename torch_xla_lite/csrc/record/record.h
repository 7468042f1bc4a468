// The recorder: records an op call, such as `a + b` for tensors on jax, as a node of the graph.
//
//   stack -> Call (words, operands, scalars) -> Verdict and OpSignature (judge.h) -> Node ->
//   tensors
//
// One boxed kernel serves all ops; it reads their differences from their schemas
// (ops/op_info.h). Nothing is computed here: the node is pending until a sync
// (runtime/runtime.h).
//
//   library.impl("add.Tensor", torch::CppFunction::makeFromBoxedFunctor(
//                                  std::make_unique<RecordKernel>()));
//
// Thread-safe: the record lock is held from the lookup of the signature until the results exist.

#ifndef TORCH_XLA_LITE_CSRC_RECORD_RECORD_H_
#define TORCH_XLA_LITE_CSRC_RECORD_RECORD_H_

#include <ATen/core/boxing/OperatorKernel.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/SmallVector.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "torch_xla_lite/csrc/ops/stack.h"
#include "torch_xla_lite/csrc/record/judge.h"

namespace c10 {
class OperatorHandle;
}  // namespace c10

namespace torch_xla_lite::record {

class RecordKernel final : public c10::OperatorKernel {
 public:
  // The results of a call, without the arguments that it writes to.
  using NewResults = c10::SmallVector<c10::IValue, 4>;

  // Records a call, if that is the verdict. The arguments may be borrowed: no reference to them is
  // kept. If many ops are pending now, the caller calls Runtime::StartPending after it has released
  // the arguments.
  Verdict Record(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments,
                 NewResults* results, bool* is_at_limit);
  // Records a call, or serves it in another way.
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack);

 private:
  const ops::OpInfo& Info(const c10::OperatorHandle& op);

  // Read on the first call: most of torch's ops are never called.
  std::atomic<const ops::OpInfo*> info_ = nullptr;
};

// Adds the lowering of a user. If the op was called before, its OpInfo does not change.
void AddLoweredOp(const std::string& name, bool needs_constants);

// Sets the function that returns a number for the current line of the user's program; each node
// stores it. With nullptr, the default, nodes have no source.
using SourceHook = uint32_t (*)();
void SetSourceHook(SourceHook hook);

}  // namespace torch_xla_lite::record

#endif  // TORCH_XLA_LITE_CSRC_RECORD_RECORD_H_
