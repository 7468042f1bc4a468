// Random bits of jax's default generator, and what is made of them.
//
//   RandomBits(Threefry::Of(seed, offset), 0, n, bits);
//   // bits[i] == jax.random.bits(key, shape, dtype)[i] in row-major order
//   Normal(Threefry::Of(seed, offset), 0, n, values);
//   // but for rounding, values[i] == jax.random.normal(key, shape)[i]
//
// Each writes the elements from `begin` to `end - 1`.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_RANDOM_BITS_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_RANDOM_BITS_H_

#include <cstdint>

#include "torch_xla_lite/csrc/kernels/threefry.h"

namespace torch_xla_lite::kernels {

// As many as take some 20 us.
inline constexpr int64_t kBitsGrain = 1 << 14;

void RandomBits(const Threefry& key, int64_t begin, int64_t end, uint32_t* bits);
void RandomBits(const Threefry& key, int64_t begin, int64_t end, uint64_t* bits);

// Where 32 bits are below the threshold.
void KeepMask(const Threefry& key, uint32_t threshold, int64_t begin, int64_t end, bool* mask);

// Of the uniform distribution in [0, 1), of that with the mean 0 and the deviation 1, and of that
// with the rate 1. Those of floats become vector instructions.
template <typename T>
void Uniform(const Threefry& key, int64_t begin, int64_t end, T* values);
template <typename T>
void Normal(const Threefry& key, int64_t begin, int64_t end, T* values);
template <typename T>
void Exponential(const Threefry& key, int64_t begin, int64_t end, T* values);

}  // namespace torch_xla_lite::kernels

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_RANDOM_BITS_H_
