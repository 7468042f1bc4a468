#include "torch_xla_lite/csrc/kernels/simd_loops.h"

#include <array>
#include <bit>
#include <limits>

#include "torch_xla_lite/csrc/kernels/processor_clones.h"

namespace torch_xla_lite::kernels {
namespace {

// On 64-bit ARM, gcc before 13 has no _Float16 in C++, although it has the macro of that type; only
// the same type under its older name.
#if defined(__aarch64__)
#define LITE_NATIVE_HALF __fp16
#elif defined(__FLT16_MANT_DIG__)
#define LITE_NATIVE_HALF _Float16
#endif

#if defined(LITE_NATIVE_HALF)

inline float WidenHalf(uint16_t half) {
  return static_cast<float>(std::bit_cast<LITE_NATIVE_HALF>(half));
}

inline uint16_t NarrowToHalf(float x) {
  return std::bit_cast<uint16_t>(static_cast<LITE_NATIVE_HALF>(x));
}

#else  // gcc 11, clang 14

// The difference of the exponents' biases, in the place of a float's exponent.
constexpr uint32_t kBias = (127 - 15) << 23;
constexpr uint32_t kInfinity = 0x7f800000;

inline float WidenHalf(uint16_t half) {
  const uint32_t exponent = half & 0x7c00, sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t shifted = uint32_t{half & 0x7fffu} << 13;
  // Subnormal: the fraction below a leading one, which is subtracted.
  const float one = std::bit_cast<float>(kBias + (1 << 23));
  const float small = std::bit_cast<float>(shifted + kBias + (1 << 23)) - one;
  const uint32_t bits = exponent == 0        ? std::bit_cast<uint32_t>(small)
                        : exponent == 0x7c00 ? shifted | kInfinity
                                             : shifted + kBias;
  return std::bit_cast<float>(bits | sign);
}

// To the nearest, of two to the even one.
inline uint16_t NarrowToHalf(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), magnitude = bits & 0x7fffffff;
  // Adding a half rounds to a multiple of the smallest subnormal number.
  const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
  const uint32_t small = std::bit_cast<uint32_t>(rounded) - std::bit_cast<uint32_t>(0.5f);
  const uint32_t normal = (magnitude - kBias + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  const uint32_t half = magnitude > kInfinity            ? 0x7e00 | (magnitude >> 13 & 0x3ff)
                        : magnitude >= 0x47800000        ? 0x7c00
                        : magnitude < kBias + (1u << 23) ? small
                                                         : normal;
  return static_cast<uint16_t>(half | (bits >> 16 & 0x8000));
}

#endif

template <typename T>
struct Ieee;

template <>
struct Ieee<float> {
  using Bits = uint32_t;
  static constexpr int kFraction = 23, kBias = 127, kDegree = 7;
  static constexpr float kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;
  static constexpr float kSmallest = -87.0f, kLargest = 88.0f;
};

template <>
struct Ieee<double> {
  using Bits = uint64_t;
  static constexpr int kFraction = 52, kBias = 1023, kDegree = 13;
  static constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;
  static constexpr double kSmallest = -708.0, kLargest = 709.0;
};

// 1/n, ... 1/1!, 1/0!: the Taylor series of exp, whose remainder on [-ln2/2, ln2/2] is below half a
// unit in the last place for the degrees above.
template <typename T>
constexpr auto TaylorOfExp() {
  std::array<T, Ieee<T>::kDegree + 1> terms{};
  double factorial = 1;
  for (int i = 0; i <= Ieee<T>::kDegree; ++i) {
    if (i > 0) factorial *= i;
    terms[Ieee<T>::kDegree - i] = static_cast<T>(1 / factorial);
  }
  return terms;
}

// exp without branches or tables, so that loops of it become vector code; std::exp is a call.
// Subnormal results are flushed to 0.
template <typename T>
inline T Exp(T x) {
  using F = Ieee<T>;
  using Bits = typename F::Bits;
  // Adding this rounds to an integer, which is then in the lowest bits.
  constexpr T kRound = static_cast<T>(Bits{3} << (F::kFraction - 1));
  constexpr auto kTerms = TaylorOfExp<T>();
  const T inside = x > F::kLargest ? F::kLargest : x;
  const T rounded = inside * static_cast<T>(1.4426950408889634) + kRound;
  const T power = rounded - kRound;
  const T rest = (inside - power * F::kLn2High) - power * F::kLn2Low;
  T sum = kTerms[0];
  for (int i = 1; i <= F::kDegree; ++i) sum = sum * rest + kTerms[i];
  const T scale = std::bit_cast<T>(
      static_cast<Bits>((std::bit_cast<Bits>(rounded) + F::kBias) << F::kFraction));
  const T result = x > F::kLargest ? std::numeric_limits<T>::infinity() : sum * scale;
  return x < F::kSmallest ? T{0} : result;
}

template <typename T>
inline T Sigmoid(T x) {
  return 1 / (1 + Exp(-x));
}

// Close to 0 the quotient has lost its digits, and the series has them.
template <typename T>
inline T Tanh(T x) {
  constexpr T kSmall = sizeof(T) == sizeof(float) ? 1e-2 : 1e-5;
  const T square = x * x;
  const T series = x - x * square * (T{1} / 3 - square * (T{2} / 15));
  return square < kSmall ? series : 1 - 2 / (1 + Exp(2 * x));
}

// The remainder at the end of a range is copied to a full vector, so that it becomes vector code,
// too: a row of ten classes consists of nothing else.
constexpr int64_t kLanes = 16;

template <typename T>
struct Tail {
  Tail(const T* x, int64_t n, T filler) {
    for (int64_t i = 0; i < kLanes; ++i) values[i] = filler;
    for (int64_t i = 0; i < n; ++i) values[i] = x[i];
  }

  T values[kLanes];
};

template <typename T>
inline T LargestOf(const T* x, int64_t n, T top) {
#pragma omp simd reduction(max : top)
  for (int64_t i = 0; i < n; ++i) top = x[i] > top ? x[i] : top;
  return top;
}

template <typename T>
inline T SumOfExp(const T* x, int64_t n, T shift, T sum) {
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += Exp(x[i] - shift);
  return sum;
}

}  // namespace

template <typename T>
LITE_CLONES T Max(const T* x, int64_t n) {
  constexpr T kNothing = -std::numeric_limits<T>::infinity();
  const int64_t whole = n - n % kLanes;
  const T top = LargestOf(x, whole, kNothing);
  if (whole == n) return top;
  return LargestOf(Tail<T>(x + whole, n - whole, kNothing).values, kLanes, top);
}

template <typename T>
LITE_CLONES T ExpSum(const T* x, int64_t n, T shift) {
  const int64_t whole = n - n % kLanes;
  const T sum = SumOfExp(x, whole, shift, T{0});
  if (whole == n) return sum;
  const Tail<T> tail(x + whole, n - whole, -std::numeric_limits<T>::infinity());
  return SumOfExp(tail.values, kLanes, shift, sum);
}

template <typename T>
LITE_CLONES void ScaledExp(const T* x, int64_t n, T shift, T scale, T* out) {
  const int64_t whole = n - n % kLanes;
#pragma omp simd
  for (int64_t i = 0; i < whole; ++i) out[i] = scale * Exp(x[i] - shift);
  if (whole == n) return;
  Tail<T> tail(x + whole, n - whole, shift);
#pragma omp simd
  for (int64_t i = 0; i < kLanes; ++i) tail.values[i] = scale * Exp(tail.values[i] - shift);
  for (int64_t i = whole; i < n; ++i) out[i] = tail.values[i - whole];
}

template <typename T>
LITE_CLONES void LstmStep(int64_t n, const T* c, const T* gates, T* new_h, T* new_c) {
#pragma omp simd
  for (int64_t at = 0; at < n; ++at) {
    const T i = Sigmoid(gates[at]), f = Sigmoid(gates[n + at]);
    const T g = Tanh(gates[2 * n + at]), o = Sigmoid(gates[3 * n + at]);
    new_c[at] = f * c[at] + i * g;
    new_h[at] = o * Tanh(new_c[at]);
  }
}

template <typename T>
LITE_CLONES void LstmStepGradient(int64_t n, const T* c, const T* gates, const T* grad_h, T* grad_c,
                                  T* grad_gates) {
#pragma omp simd
  for (int64_t at = 0; at < n; ++at) {
    const T i = Sigmoid(gates[at]), f = Sigmoid(gates[n + at]);
    const T g = Tanh(gates[2 * n + at]), o = Sigmoid(gates[3 * n + at]);
    const T squashed = Tanh(f * c[at] + i * g);
    const T grad = grad_c[at] + grad_h[at] * o * (1 - squashed * squashed);
    grad_gates[at] = grad * g * i * (1 - i);
    grad_gates[n + at] = grad * c[at] * f * (1 - f);
    grad_gates[2 * n + at] = grad * i * (1 - g * g);
    grad_gates[3 * n + at] = grad_h[at] * squashed * o * (1 - o);
    grad_c[at] = grad * f;
  }
}

#define LITE_LOOPS_OF(T)                                       \
  template T Max(const T*, int64_t);                           \
  template T ExpSum(const T*, int64_t, T);                     \
  template void ScaledExp(const T*, int64_t, T, T, T*);        \
  template void LstmStep(int64_t, const T*, const T*, T*, T*); \
  template void LstmStepGradient(int64_t, const T*, const T*, const T*, T*, T*)
LITE_LOOPS_OF(float);
LITE_LOOPS_OF(double);

LITE_CLONES void Widen(const BFloat16* x, int64_t n, float* out) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) out[i] = std::bit_cast<float>(uint32_t{x[i].bits} << 16);
}

LITE_CLONES void Widen(const Half* x, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = WidenHalf(x[i].bits);
}

LITE_CLONES void Narrow(const float* x, int64_t n, BFloat16* out) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[i]);
    const uint32_t nearest = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    out[i].bits = static_cast<uint16_t>(x[i] != x[i] ? 0x7fc0 : nearest);
  }
}

LITE_CLONES void Narrow(const float* x, int64_t n, Half* out) {
  for (int64_t i = 0; i < n; ++i) out[i].bits = NarrowToHalf(x[i]);
}

}  // namespace torch_xla_lite::kernels
