// Booleans, true where 32 random bits of jax's default generator are below a threshold.
//
//   KeepMask(Threefry::Of(seed, offset), threshold, 0, n, mask);
//   // mask[i] == (bits(key, shape, uint32)[i] < threshold) in row-major order

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_KEEP_MASK_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_KEEP_MASK_H_

#include <cstdint>

#include "torch_xla_lite/csrc/kernels/threefry.h"

namespace torch_xla_lite::kernels {

// As many as take some 20 us.
inline constexpr int64_t kMaskGrain = 1 << 14;

// Writes mask[begin] to mask[end - 1].
void KeepMask(const Threefry& key, uint32_t threshold, int64_t begin, int64_t end, bool* mask);

}  // namespace torch_xla_lite::kernels

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_KEEP_MASK_H_
