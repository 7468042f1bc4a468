// Memory of arrays: blocks of their own, apart from the heap.
//
// Arrays live shortly, what is remembered of a new graph does not. Side by side in the heap, the
// latter would leave holes between themselves that no larger array fits into, and a loop whose
// arrays grow would take more memory in each round.
//
//   const BlockScope blocks;      // large tensors of the CPU that this thread makes are blocks
//   at::Tensor array = at::detail::empty_cpu({1 << 20}, at::kFloat);
//
// A block is mapped for itself. Freed blocks are kept for arrays of about the same size, because
// the kernel clears each page that a program touches for the first time: with them, a loop that
// makes the same arrays again and again costs what it costs in the heap.
//
// Thread-safe. Blocks may be freed on any thread, also in a forked process.

#ifndef TORCH_XLA_LITE_CSRC_DEVICE_BLOCK_ALLOCATOR_H_
#define TORCH_XLA_LITE_CSRC_DEVICE_BLOCK_ALLOCATOR_H_

#include <cstddef>

namespace torch_xla_lite::device {

// Smaller arrays are in the heap.
inline constexpr size_t kSmallestBlock = size_t{1} << 14;

class BlockScope {
 public:
  BlockScope();
  ~BlockScope();
  BlockScope(const BlockScope&) = delete;
  BlockScope& operator=(const BlockScope&) = delete;

 private:
  const bool was_active_;
};

struct BlockBytes {
  size_t used = 0;
  size_t kept = 0;  // For later arrays.
};
BlockBytes CountBlockBytes();

// How much is kept depends on the most bytes that were in use at once in this period and the last.
// The run of a program that has memory of its own ends one.
void EndBlockPeriod();

// Gives what no array uses back to the system.
void ReleaseKeptBlocks();

}  // namespace torch_xla_lite::device

#endif  // TORCH_XLA_LITE_CSRC_DEVICE_BLOCK_ALLOCATOR_H_
