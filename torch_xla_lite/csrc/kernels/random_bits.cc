#include "torch_xla_lite/csrc/kernels/random_bits.h"

#include <algorithm>
#include <limits>

#include "torch_xla_lite/csrc/kernels/processor_clones.h"
#include "torch_xla_lite/csrc/kernels/quantile.h"

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

// `kLeast` is the next number after -1.
template <typename T>
inline T NormalOf(uint32_t high, uint32_t low) {
  constexpr T kLeast = std::numeric_limits<T>::epsilon() / 2 - 1;
  return NormalQuantile(std::max(kLeast, Unit<T>(high, low) * 2 + kLeast));
}

template <typename T>
inline T ExponentialOf(uint32_t high, uint32_t low) {
  return -Log(OpenUnit<T>(high, low));
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

template <>
LITE_CLONES void Uniform(const Threefry& key, int64_t begin, int64_t end, float* values) {
  Fill(key, begin, end, values, Unit<float>);
}

template <>
LITE_CLONES void Normal(const Threefry& key, int64_t begin, int64_t end, float* values) {
  Fill(key, begin, end, values, NormalOf<float>);
}

template <>
LITE_CLONES void Exponential(const Threefry& key, int64_t begin, int64_t end, float* values) {
  Fill(key, begin, end, values, ExponentialOf<float>);
}

template <>
void Uniform(const Threefry& key, int64_t begin, int64_t end, double* values) {
  Fill(key, begin, end, values, Unit<double>);
}

template <>
void Normal(const Threefry& key, int64_t begin, int64_t end, double* values) {
  Fill(key, begin, end, values, NormalOf<double>);
}

template <>
void Exponential(const Threefry& key, int64_t begin, int64_t end, double* values) {
  Fill(key, begin, end, values, ExponentialOf<double>);
}

}  // namespace torch_xla_lite::kernels
