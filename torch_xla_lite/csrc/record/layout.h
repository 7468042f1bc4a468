// Makes tensors whose strides are not row-major: memory_format=torch.channels_last, empty_strided.
//
// Every value is row-major. A tensor whose dimensions lie in another order in memory is a base in
// that order and a view of it with the dimensions permuted back.
//
//   at::Tensor t = WithStrides(row_major, StridesFor(row_major, at::MemoryFormat::ChannelsLast));
//   t.is_contiguous(at::MemoryFormat::ChannelsLast);    // true

#ifndef TORCH_XLA_LITE_CSRC_RECORD_LAYOUT_H_
#define TORCH_XLA_LITE_CSRC_RECORD_LAYOUT_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/MemoryFormat.h>

#include <vector>

namespace torch_xla_lite::record {

// A new tensor with the same value.
at::Tensor CopyOf(const at::Tensor& tensor);

// The strides of a copy of `tensor` in a format; with Preserve those of `tensor`, if its elements
// fill a range of memory, otherwise row-major ones.
std::vector<int64_t> StridesFor(const at::Tensor& tensor, at::MemoryFormat format);

// `tensor`, which is row-major, with these strides. They must come from a permutation of its
// dimensions; otherwise it stays row-major.
at::Tensor WithStrides(const at::Tensor& tensor, at::IntArrayRef strides);

// Gives the result of a call the strides that its argument `layout` asks for: a memory_format or
// strides. Those that are to be preserved are the first argument's. Both may be lists of tensors.
void ApplyLayout(c10::ArrayRef<c10::IValue> arguments, int layout, c10::IValue* result);

}  // namespace torch_xla_lite::record

#endif  // TORCH_XLA_LITE_CSRC_RECORD_LAYOUT_H_
