#include "torch_xla_lite/csrc/kernels/keep_mask.h"

#include <algorithm>

#include "torch_xla_lite/csrc/kernels/processor_clones.h"

namespace torch_xla_lite::kernels {

LITE_CLONES void KeepMask(const Threefry& key, uint32_t threshold, int64_t begin, int64_t end,
                          bool* mask) {
  const Threefry generator = key;
  while (begin < end) {
    // The indices of these have the same upper half.
    const auto high = static_cast<uint32_t>(begin >> 32), low = static_cast<uint32_t>(begin);
    const auto size = static_cast<int>(std::min(kMaskGrain - begin % kMaskGrain, end - begin));
    for (int i = 0; i < size; ++i) {
      const auto [x, y] = generator.At(high, low + i);
      mask[begin + i] = (x ^ y) < threshold;
    }
    begin += size;
  }
}

}  // namespace torch_xla_lite::kernels
