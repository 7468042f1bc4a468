// Counts the memory of the device, for the functions of torch that report it.
//
//   torch.accelerator.memory_allocated()     # bytes of the arrays that tensors hold
//   torch.accelerator.get_memory_info()      # free and total bytes, from XLA
//
// XLA allocates the memory, so the allocator that torch finds for the device only counts: the
// runtime reports each array that begins or ceases to belong to a tensor.
//
//   NoteAllocated(num_bytes);
//   NoteFreed(num_bytes);
//
// Thread-safe, without locks: arrays die on any thread, also in a forked process.

#ifndef TORCH_XLA_LITE_CSRC_DEVICE_MEMORY_H_
#define TORCH_XLA_LITE_CSRC_DEVICE_MEMORY_H_

#include <cstddef>
#include <functional>
#include <utility>

namespace torch_xla_lite::device {

void NoteAllocated(size_t num_bytes);
void NoteFreed(size_t num_bytes);

struct MemoryHooks {
  // Gives back what no tensor holds any more.
  std::function<void()> release;
  // Free and total bytes of the device.
  std::function<std::pair<size_t, size_t>()> info;
};

// Call it once, before other threads use the device.
void SetMemoryHooks(MemoryHooks hooks);

}  // namespace torch_xla_lite::device

#endif  // TORCH_XLA_LITE_CSRC_DEVICE_MEMORY_H_
