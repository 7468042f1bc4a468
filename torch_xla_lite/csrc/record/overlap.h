// Refuses writes to tensors whose memory overlaps itself or another argument, as torch's kernels
// do.
//
//   x[1:].add_(x[:-1])        // Raises: which elements are read before they are written?
//   x.expand(3).add_(1)       // Raises: one location would be written three times.
//   x.add_(x)                 // Each element is read before it is written.
//
// Values never change here, so such calls would compute something. They are refused all the same: a
// program that is wrong on other devices gets their error.

#ifndef TORCH_XLA_LITE_CSRC_RECORD_OVERLAP_H_
#define TORCH_XLA_LITE_CSRC_RECORD_OVERLAP_H_

#include <ATen/core/ivalue.h>

#include <string>

#include "torch_xla_lite/csrc/ops/op_info.h"
#include "torch_xla_lite/csrc/tensor/tensor_impl.h"

namespace torch_xla_lite::record {

// Raises if a tensor is not on jax, or is expanded: several of its elements then share one memory
// location, and which value it gets would be undefined. `op` is for the message.
void CheckWritable(const at::Tensor& tensor, const std::string& op, bool allow_expanded = false);

// Raises if an operand shares more memory with the written tensor than `allowed`.
void CheckSharing(const tensor::XTensorImpl& written, const at::Tensor& operand,
                  ops::OpInfo::Sharing allowed);

// Both, for all arguments of a call. The items of lists correspond to each other.
void CheckWrites(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments);

// Whether an item of a list that the op writes to shares its memory with an item at another place,
// as in _foreach_add_([x, x], 1): torch's kernels go through the lists item by item. `arguments`
// are tensors on jax.
bool ListsShareMemory(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments);

}  // namespace torch_xla_lite::record

#endif  // TORCH_XLA_LITE_CSRC_RECORD_OVERLAP_H_
