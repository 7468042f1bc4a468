// Call: the arguments of an op call, split into the key that determines how it is compiled (words)
// and its data (operands, scalars).
//
//   Call call;
//   call.Read(info, arguments);      // the arguments of the boxed call
//   table.Find(call.words);          // the signature of this call, if there is one
//
// Building it is most of the cost of recording: it takes one pass, without allocations for calls of
// usual size.

#ifndef TORCH_XLA_LITE_CSRC_OPS_CALL_H_
#define TORCH_XLA_LITE_CSRC_OPS_CALL_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <span>

#include "torch_xla_lite/csrc/ops/op_info.h"
#include "torch_xla_lite/csrc/tensor/tensor_impl.h"

namespace torch_xla_lite::ops {

class Call {
 public:
  enum class Status {
    kOk,
    // An argument has our dispatch key but is not an XTensorImpl: a fake tensor or a wrapper.
    kForeign,
    kCpuIndices,  // An index tensor is on the CPU; move it and read again.
  };

  // Throws if a tensor is on another device.
  Status Read(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments);

  std::span<const uint64_t> key() const { return {words.data(), words.size()}; }

  // The first word is the op; the arguments follow (ops/words.h), then, for views, the layouts
  // of operands.
  c10::SmallVector<uint64_t, 48> words;
  c10::SmallVector<tensor::XTensorImpl*, 8> operands;
  c10::SmallVector<uint64_t, 8> scalars;
  // The storage offset of a view with a runtime index, relative to its operand, in elements.
  int64_t runtime_offset = 0;
  // The place in the user's program that made the call; 0 if unknown.
  uint32_t source = 0;

 private:
  Status ReadTensor(const c10::IValue& value, bool may_be_index = false);
  Status ReadTensorArgument(const c10::IValue& value);
  Status ReadCpuTensor(const at::Tensor& value, bool may_be_index);
  void ReadScalar(const c10::IValue& value, const OpInfo::Argument& argument);
  void ReadGeneric(const c10::IValue& value);
  void ReadIndex(c10::ArrayRef<c10::IValue> arguments);
  void ReadIndexEnd(const c10::IValue& value);
  void PushInt(int64_t value);
  void PushDouble(double value);
  void PushRuntimeNumber(const c10::Scalar& value, uint64_t flags);

  const OpInfo* info_ = nullptr;
  c10::ArrayRef<c10::IValue> arguments_;
  c10::SmallVector<uint64_t, 16> layouts_;
  bool is_runtime_index_ = false;
  bool is_valid_index_ = false;
  int64_t slice_end_ = 0;
};

// While it exists, the indices of views that this thread records are constants of the graph. Slices
// at constant places compile faster than those at operands.
class ConstantIndices {
 public:
  ConstantIndices();
  ~ConstantIndices();
  ConstantIndices(const ConstantIndices&) = delete;
  ConstantIndices& operator=(const ConstantIndices&) = delete;
};

// torch's default dtype when a call was recorded, from its words.
c10::ScalarType DefaultDtypeOf(std::span<const uint64_t> words);

}  // namespace torch_xla_lite::ops

#endif  // TORCH_XLA_LITE_CSRC_OPS_CALL_H_
