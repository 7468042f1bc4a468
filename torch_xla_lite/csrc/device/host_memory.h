// Pinned host memory: what `tensor.pin_memory()` and DataLoader(pin_memory=True) return.
//
// XLA reads any host memory, and copies it to a GPU by a staging buffer of its own. So this is
// plain memory of which torch remembers that it was asked for as pinned.

#ifndef TORCH_XLA_LITE_CSRC_DEVICE_HOST_MEMORY_H_
#define TORCH_XLA_LITE_CSRC_DEVICE_HOST_MEMORY_H_

#include <c10/core/Allocator.h>

namespace torch_xla_lite::device {

c10::Allocator* PinnedMemoryAllocator();
bool IsPinned(const void* address);

}  // namespace torch_xla_lite::device

#endif  // TORCH_XLA_LITE_CSRC_DEVICE_HOST_MEMORY_H_
