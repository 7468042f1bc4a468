// Judges how a call is served: recorded, or by one of the other ways.
//
//   Call call;
//   Verdict verdict = JudgeArguments(info, arguments, &call);     // reads the call
//   RecordScope scope;
//   if (verdict == Verdict::kRecord) verdict = JudgeSignature(info, arguments, call).verdict;
//
// Nothing has happened yet when a call is judged: no seed is drawn, nothing is resized.

#ifndef TORCH_XLA_LITE_CSRC_RECORD_JUDGE_H_
#define TORCH_XLA_LITE_CSRC_RECORD_JUDGE_H_

#include <ATen/core/ivalue.h>
#include <c10/core/DispatchKey.h>

#include <cstdint>

#include "torch_xla_lite/csrc/ir/record_lock.h"
#include "torch_xla_lite/csrc/ir/thread_annotations.h"
#include "torch_xla_lite/csrc/ops/call.h"
#include "torch_xla_lite/csrc/ops/map_tensors.h"
#include "torch_xla_lite/csrc/ops/op_info.h"
#include "torch_xla_lite/csrc/tensor/op_signature.h"

namespace torch_xla_lite::record {

enum class Verdict : uint8_t {
  kRecord,
  kOnCpu,       // The CPU kernel serves the call, or raises its error.
  kForeign,     // It has a tensor that is not an XTensorImpl.
  kCpuIndices,  // It has indices on the CPU.
  kConvert,     // Its result has another dtype than the tensor that it writes.
  kItemByItem,  // The items of its lists share memory.
  kResize,      // Its out= tensors have other sizes than its results.
  kElsewhere,   // Its options name another device or layout.
};

// Reads the call, and judges all but its signature. Raises torch's errors for writes to tensors
// that share memory, and for tensors on another device.
Verdict JudgeArguments(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
                       ops::Call* call);

struct Judged {
  Verdict verdict;
  // Of the call; valid while the record lock is held.
  const tensor::OpSignature* signature;
  // Whether no call before had this signature.
  bool is_new;
};

// Finds the signature of the call, or infers it, with the record lock released meanwhile.
Judged JudgeSignature(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
                      const ops::Call& call) LITE_REQUIRES(ir::record_lock);

// The key of the kernel that makes a tensor with the options of a call.
c10::DispatchKey KeyOfOptions(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments);

// Whether the out= tensors have the sizes of the results.
bool OutputsFit(const ops::OpInfo& info, const tensor::OpSignature& signature,
                c10::ArrayRef<c10::IValue> arguments);

// How many outputs of a call are new values of its arguments; they are the last ones.
uint32_t CountMutatedOutputs(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments);

// Calls `visit` with each tensor that a call writes to, and its new sizes.
template <typename Visit>
void ForEachWritten(const ops::OpInfo& info, const tensor::OpSignature& signature,
                    c10::ArrayRef<c10::IValue> arguments, Visit&& visit) {
  size_t output = signature.outputs.size() - CountMutatedOutputs(info, arguments);
  for (const int i : info.mutated) {
    ops::ForEachTensor(arguments[i], [&](const at::Tensor& tensor) {
      const ir::Shape* shape = signature.outputs[output++];
      if (tensor.defined()) visit(tensor, at::IntArrayRef(shape->dims()));
    });
  }
}

}  // namespace torch_xla_lite::record

#endif  // TORCH_XLA_LITE_CSRC_RECORD_JUDGE_H_
