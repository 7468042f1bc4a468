#include "torch_xla_lite/csrc/kernels/random_bits.h"

#include <algorithm>

#include "torch_xla_lite/csrc/kernels/processor_clones.h"

namespace torch_xla_lite::kernels {
namespace {

// Writes make(high, low) of the halves of each number.
template <typename T, typename Make>
inline void Fill(const Threefry& key, int64_t begin, int64_t end, T* results, Make make) {
  const Threefry generator = key;
  while (begin < end) {
    // The indices of these have the same upper half.
    const auto high = static_cast<uint32_t>(begin >> 32), low = static_cast<uint32_t>(begin);
    const auto size = static_cast<int>(std::min(kBitsGrain - begin % kBitsGrain, end - begin));
    for (int i = 0; i < size; ++i) {
      const auto [x, y] = generator.At(high, low + i);
      results[begin + i] = make(x, y);
    }
    begin += size;
  }
}

}  // namespace

LITE_CLONES void RandomBits(const Threefry& key, int64_t begin, int64_t end, uint32_t* bits) {
  Fill(key, begin, end, bits, [](uint32_t x, uint32_t y) { return x ^ y; });
}

LITE_CLONES void RandomBits(const Threefry& key, int64_t begin, int64_t end, uint64_t* bits) {
  Fill(key, begin, end, bits, [](uint32_t x, uint32_t y) { return uint64_t{x} << 32 | y; });
}

LITE_CLONES void KeepMask(const Threefry& key, uint32_t threshold, int64_t begin, int64_t end,
                          bool* mask) {
  Fill(key, begin, end, mask, [=](uint32_t x, uint32_t y) { return (x ^ y) < threshold; });
}

}  // namespace torch_xla_lite::kernels
