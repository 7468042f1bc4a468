// Runs a kernel on parts of a batch, each on one of XLA's threads.
//
//   RunParts(3, [&](auto task) { pool.Schedule(std::move(task)); }, [&](size_t part) { ... });
//
// torch divides a kernel among OpenMP's threads, which are others than XLA's: on two cores, with a
// thread of each for every core, they wait for each other (docs/decisions.md). Whoever calls
// RunParts takes part, so it ends also if no thread of the pool is free.

#ifndef TORCH_XLA_LITE_CSRC_FFI_PARTS_H_
#define TORCH_XLA_LITE_CSRC_FFI_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>

namespace torch_xla_lite::ffi {

// Elements [begin, begin + size) of the first dimension.
struct Rows {
  int64_t begin;
  int64_t size;
};

// The rows of one of `count` parts, whose sizes differ by one at most.
Rows RowsOf(size_t part, size_t count, int64_t rows);

// Calls `run` for each part in [0, count), and returns when all have returned. `schedule` runs a
// task on another thread, at some time or never. Rethrows what a part throws, the first by number.
void RunParts(size_t count, const std::function<void(std::function<void()>)>& schedule,
              const std::function<void(size_t)>& run);

}  // namespace torch_xla_lite::ffi

#endif  // TORCH_XLA_LITE_CSRC_FFI_PARTS_H_
