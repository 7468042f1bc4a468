#include "torch_xla_lite/csrc/kernels/random_bits.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numbers>

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

// In [0, 1): the fraction of a number in [1, 2).
inline float UnitFloat(uint32_t high, uint32_t low) {
  return std::bit_cast<float>((high ^ low) >> 9 | 0x3F800000) - 1;
}

// The logarithm of 2^e m, a positive normal number with m between the roots of 1/2 and 2: that of m
// is 2 artanh((m - 1) / (m + 1)), whose series has an error of 4e-9 here.
inline float Log(float x) {
  constexpr uint32_t kRoot = std::bit_cast<uint32_t>(std::numbers::sqrt2_v<float> / 2);
  const uint32_t distance = std::bit_cast<uint32_t>(x) - kRoot;
  const auto exponent = static_cast<float>(static_cast<int32_t>(distance) >> 23);
  const float m = std::bit_cast<float>((distance & 0x7fffff) + kRoot);
  const float s = (m - 1) / (m + 1), z = s * s;
  const float series = 2 + z * (2.F / 3 + z * (2.F / 5 + z * (2.F / 7 + z * (2.F / 9))));
  return exponent * std::numbers::ln2_v<float> + s * series;
}

// The normal quantile of (1 + x) / 2, |x| < 1: x times a function of -log(1 - x^2), which goes to
// 16. The polynomial around 6 is the best one by relative error, which is below 3e-7.
inline float NormalQuantile(float x) {
  constexpr float kPolynomial[] = {
      2.28687778e-15F, -8.6829937e-14F,  1.00262723e-12F,  2.31781109e-12F, -1.53209459e-10F,
      1.31219935e-09F, -1.15921517e-09F, -7.90201042e-08F, 1.01990338e-06F, -7.36916354e-06F,
      1.99040478e-05F, 0.000361345068F,  -0.00939971209F,  0.282460213F,    3.23349237F};
  const float w = -Log((1 - x) * (1 + x)) - 6;
  float factor = 0;
  for (const float coefficient : kPolynomial) factor = factor * w + coefficient;
  return x * factor;
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

LITE_CLONES void Uniform(const Threefry& key, int64_t begin, int64_t end, float* values) {
  Fill(key, begin, end, values, UnitFloat);
}

LITE_CLONES void Normal(const Threefry& key, int64_t begin, int64_t end, float* values) {
  constexpr float kLeast = -0x1.fffffep-1F;  // The next after -1.
  Fill(key, begin, end, values, [=](uint32_t high, uint32_t low) {
    return NormalQuantile(std::max(kLeast, UnitFloat(high, low) * 2 + kLeast));
  });
}

LITE_CLONES void Exponential(const Threefry& key, int64_t begin, int64_t end, float* values) {
  constexpr float kLeast = std::numeric_limits<float>::min();
  Fill(key, begin, end, values,
       [=](uint32_t high, uint32_t low) { return -Log(std::max(kLeast, UnitFloat(high, low))); });
}

}  // namespace torch_xla_lite::kernels
