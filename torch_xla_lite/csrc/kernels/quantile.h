// Inline functions of the distributions' kernels: units of random bits, logarithms, quantiles.
//
//   float u = Unit<float>(high, low);        // in [0, 1)
//   float x = NormalQuantile(2 * u - 1);     // of the normal distribution, of (1 + (2 u - 1)) / 2
//
// Those of floats have no branches and call nothing, so that loops of them become vector
// instructions.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_QUANTILE_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_QUANTILE_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

namespace torch_xla_lite::kernels {

// The fraction of a number in [1, 2), of the halves of 64 random bits.
template <typename T>
T Unit(uint32_t high, uint32_t low);

template <>
inline float Unit(uint32_t high, uint32_t low) {
  return std::bit_cast<float>((high ^ low) >> 9 | 0x3F800000) - 1;
}

template <>
inline double Unit(uint32_t high, uint32_t low) {
  return std::bit_cast<double>((uint64_t{high} << 32 | low) >> 12 | 0x3FF0000000000000) - 1;
}

// In (0, 1): half the distance of two numbers in place of 0.
template <typename T>
T OpenUnit(uint32_t high, uint32_t low) {
  return std::max(std::numeric_limits<T>::epsilon() / 2, Unit<T>(high, low));
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

inline double Log(double x) { return std::log(x); }

// The normal quantile of (1 + x) / 2, |x| < 1: x times a function of w = -log(1 - x^2), which goes
// to 16. The polynomial around 6 is the best one by relative error, which is below 3e-7.
template <typename T>
inline T NearNormalQuantile(T x, T w) {
  constexpr float kPolynomial[] = {
      2.28687778e-15F, -8.6829937e-14F,  1.00262723e-12F,  2.31781109e-12F, -1.53209459e-10F,
      1.31219935e-09F, -1.15921517e-09F, -7.90201042e-08F, 1.01990338e-06F, -7.36916354e-06F,
      1.99040478e-05F, 0.000361345068F,  -0.00939971209F,  0.282460213F,    3.23349237F};
  T factor = 0;
  for (const float coefficient : kPolynomial) factor = factor * (w - 6) + coefficient;
  return x * factor;
}

inline float NormalQuantile(float x) { return NearNormalQuantile(x, -Log((1 - x) * (1 + x))); }

// Improved by Halley's method. The error function is exact near 0, its complement far from it.
inline double NormalQuantile(double x) {
  const double size = std::abs(x), rest = 1 - size, w = -std::log(rest * (1 + size));
  double y = w < 16 ? NearNormalQuantile(size, w) / std::numbers::sqrt2 : std::sqrt(w);
  for (double step = 1; std::abs(step) > 1e-5 * y;) {
    const double error = size < 0.5 ? std::erf(y) - size : rest - std::erfc(y);
    const double newton = error * std::exp(y * y) / (2 * std::numbers::inv_sqrtpi);
    step = newton / (1 + newton * y);
    y -= step;
  }
  return std::copysign(y * std::numbers::sqrt2, x);
}

}  // namespace torch_xla_lite::kernels

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_QUANTILE_H_
