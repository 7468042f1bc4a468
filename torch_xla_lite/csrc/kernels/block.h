// Block: up to 1,024 elements of any floating type, read and written as floats or doubles.
//
//   Block<BFloat16> block;
//   const float* x = block.Read(row, n);        // a copy only if the row has another type
//
//   float* y = block.Target(row);               // compute the results there ...
//   block.Write(row, n);                        // ... and store them in the row's type
//
// Not thread-safe; lives on the stack.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_BLOCK_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_BLOCK_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "torch_xla_lite/csrc/kernels/element.h"
#include "torch_xla_lite/csrc/kernels/simd_loops.h"

namespace torch_xla_lite::kernels {

// Elements that are processed at a time: 4 kB of floats, so that several blocks fit into the L1
// cache.
inline constexpr int64_t kBlock = 1024;

template <typename T>
class Block {
 public:
  using A = Accumulator<T>;

  const A* Read(const T* from, int64_t n) {
    if constexpr (kSame) {
      return from;
    } else {
      Widen(from, n, values_);
      return values_;
    }
  }

  A* Target(T* to) {
    if constexpr (kSame) {
      return to;
    } else {
      return values_;
    }
  }

  void Write(T* to, int64_t n) {
    if constexpr (!kSame) Narrow(values_, n, to);
  }

 private:
  static constexpr bool kSame = std::is_same_v<A, T>;
  A values_[kSame ? 1 : kBlock];
};

template <typename T>
Accumulator<T> Widened(const T& x) {
  return *Block<T>().Read(&x, 1);
}

// The number of rows of n elements that are worth waking a thread for: about ten microseconds of
// work.
inline int64_t RowsOfOneTask(int64_t n) {
  return std::max<int64_t>(1, (int64_t{1} << 15) / std::max<int64_t>(1, n));
}

}  // namespace torch_xla_lite::kernels

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_BLOCK_H_
