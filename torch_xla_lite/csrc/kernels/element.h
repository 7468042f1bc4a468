// Element types of the kernels, for the CPU and the GPU.
//
// 16-bit types are stored as bits, because CPU and GPU convert them differently. Arithmetic is done
// in the accumulator's type, which is at least float.
//
//   Accumulator<BFloat16> sum = 0;               // a float

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_ELEMENT_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_ELEMENT_H_

#include <cstdint>
#include <type_traits>

namespace torch_xla_lite::kernels {

struct BFloat16 {
  uint16_t bits;
};

struct Half {
  uint16_t bits;
};

// The type for arithmetic and sums.
template <typename T>
using Accumulator = std::conditional_t<std::is_same_v<T, double>, double, float>;

}  // namespace torch_xla_lite::kernels

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_ELEMENT_H_
