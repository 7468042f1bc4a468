#include "torch_xla_lite/csrc/kernels/distributions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "torch_xla_lite/csrc/kernels/quantile.h"
#include "torch_xla_lite/csrc/kernels/random_bits.h"

namespace torch_xla_lite::kernels {
namespace {

template <typename T>
T OpenUnitAt(const Threefry& key, uint64_t index) {
  const auto [high, low] = key.At(static_cast<uint32_t>(index >> 32), static_cast<uint32_t>(index));
  return OpenUnit<T>(high, low);
}

// The first number that is accepted: attempt(u, &number) gets `draws` of T in (0, 1) for each
// round.
template <typename T, size_t draws, typename Attempt>
double FirstAccepted(const Threefry& key, int64_t index, const Attempt& attempt) {
  double number = 0;
  for (uint32_t round = 0;; ++round) {
    const Threefry of_round = key.Round(round);
    std::array<T, draws> u;
    for (size_t i = 0; i < draws; ++i) u[i] = OpenUnitAt<T>(of_round, index * draws + i);
    if (attempt(u, &number)) return number;
  }
}

// Source: Marsaglia and Tsang, "A simple method for generating gamma variables".
template <typename T>
double LogGamma(const Threefry& key, int64_t index, T shape) {
  if (!(shape > 0 && shape < std::numeric_limits<T>::infinity())) return std::log(shape);
  const bool is_boosted = shape < 1;
  const double d = (is_boosted ? 1.0 + shape : shape) - 1. / 3, c = 1 / std::sqrt(9 * d);
  const auto attempt = [&](const std::array<T, 3>& u, double* number) {
    constexpr T kLeast = std::numeric_limits<T>::epsilon() / 2 - 1;
    const double x = NormalQuantile(std::max(kLeast, 2 * u[0] - 1));
    const double root = 1 + c * x, cube = root * root * root;
    if (cube <= 0) return false;
    const double log_cube = std::log(cube);
    *number = log_cube + (is_boosted ? std::log(u[2]) / shape : 0);
    return std::log(u[1]) < x * x / 2 + d * (1 - cube + log_cube);
  };
  return std::log(d) + FirstAccepted<T, 3>(key, index, attempt);
}

// The smallest k whose cumulative probability exceeds `u`. `probability` is that of 0, and next(k,
// that of k - 1) gives that of k.
template <typename Next>
double Invert(double u, double probability, const Next& next) {
  double k = 0, cumulative = probability;
  while (u >= cumulative && probability > 0) {
    probability = next(++k, probability);
    cumulative += probability;
  }
  return k;
}

// What Stirling's formula lacks: log(k!) - (k + 1/2) log(k + 1) + (k + 1) - log(2 pi) / 2.
double StirlingTail(double k) {
  static const auto kTails = [] {
    std::array<double, 10> tails;
    double log_factorial = 0;
    for (int k = 0; k < 10; ++k) {
      log_factorial += std::log(std::max(k, 1));
      tails[k] = log_factorial - (k + 0.5) * std::log(k + 1.) + (k + 1) -
                 std::log(2 * std::numbers::pi) / 2;
    }
    return tails;
  }();
  if (k < 10) return kTails[static_cast<size_t>(k)];
  const double n = k + 1, square = n * n;
  return (1. / 12 - (1. / 360 - 1. / 1260 / square) / square) / n;
}

// Of the transformed rejection method: a candidate, the logarithm that its probability must reach,
// and whether it surely does.
struct Candidate {
  template <typename T>
  Candidate(const std::array<T, 2>& u, double a, double b, double center, double scale,
            double v_r) {
    const double x = u[0] - 0.5, v = u[1], distance = 0.5 - std::abs(x), slope = a / distance;
    k = std::floor((2 * slope + b) * x + center);
    bound = std::log(v * scale / (slope / distance + b));
    is_inside = distance >= 0.07 && v <= v_r;
  }

  double k, bound;
  bool is_inside;
};

// Nothing is accepted for an infinite number.
template <typename T>
double Finite(T x) {
  return std::isnan(x) ? x : std::min(x, std::numeric_limits<T>::max() / 16);
}

// Source: Hoermann, "The transformed rejection method for generating Poisson random variables".
template <typename T>
double Poisson(const Threefry& key, int64_t index, T given) {
  const double rate = Finite(given);
  if (!(rate >= 10)) {  // Also NaN.
    return Invert(OpenUnitAt<T>(key, 2 * index), std::exp(-rate),
                  [&](double k, double before) { return before * rate / k; });
  }
  const double b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  const double scale = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  return FirstAccepted<T, 2>(key, index, [&](const std::array<T, 2>& u, double* number) {
    const Candidate drawn(u, a, b, rate + 0.43, scale, v_r);
    const double k = *number = drawn.k;
    if (k < 0 || drawn.is_inside) return k >= 0;
    const double log_probability = k * std::log(rate / (k + 1)) - std::log(k + 1) / 2 - rate + k +
                                   1 - std::log(2 * std::numbers::pi) / 2 - StirlingTail(k);
    return drawn.bound <= log_probability;
  });
}

// Source: Hoermann, "The generation of binomial random variates".
template <typename T>
double Binomial(const Threefry& key, int64_t index, T count, T probability) {
  if (std::isnan(count) || std::isnan(probability)) return std::numeric_limits<double>::quiet_NaN();
  const double n = Finite(count);
  const bool is_flipped = probability > 0.5;
  const double p = is_flipped ? 1.0 - probability : probability, ratio = p / (1 - p);
  const auto result = [&](double drawn) { return is_flipped ? n - drawn : drawn; };
  if (n * p < 10) {
    const auto next = [&](double k, double before) { return before * (n - k + 1) / k * ratio; };
    const double none = std::exp(n * std::log1p(-p));
    return result(std::min(n, Invert(OpenUnitAt<T>(key, 2 * index), none, next)));
  }
  const double deviation = std::sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p, scale = (2.83 + 5.1 / b) * deviation;
  const double v_r = 0.92 - 4.2 / b, mode = std::floor((n + 1) * p);
  // The logarithm of the probability of k, relative to that of the mode.
  const auto log_weight = [&](double k) {
    return (mode + 0.5) * std::log((mode + 1) / (k + 1)) +
           (n - mode + 0.5) * std::log((n - mode + 1) / (n - k + 1)) +
           (k - mode) * std::log(ratio * (n - k + 1) / (k + 1)) + StirlingTail(mode) +
           StirlingTail(n - mode) - StirlingTail(k) - StirlingTail(n - k);
  };
  return result(FirstAccepted<T, 2>(key, index, [&](const std::array<T, 2>& u, double* number) {
    const Candidate drawn(u, a, b, n * p + 0.5, scale, v_r);
    const double k = *number = drawn.k;
    return k >= 0 && k <= n && (drawn.is_inside || drawn.bound <= log_weight(k));
  }));
}

template <typename T>
T Cauchy(T unit) {
  return std::tan((unit - T{0.5}) * std::numbers::pi_v<T>);
}

template <typename T>
void LogNormal(int64_t begin, int64_t end, const Parameters<T>& parameters, T* values) {
  const auto [mean, deviation] = parameters;
  for (int64_t i = begin; i < end; ++i) {
    values[i] = std::exp(static_cast<T>(mean[i] + double{deviation[i]} * values[i]));
  }
}

}  // namespace

int64_t GrainOf(Distribution distribution) {
  return distribution <= Distribution::kExponential ? kBitsGrain : 256;
}

template <typename T>
void Draw(Distribution distribution, const Threefry& key, int64_t begin, int64_t end,
          const Parameters<T>& parameters, T* values) {
  const auto [first, second] = parameters;
  const auto for_each = [&](const auto& draw) {
    for (int64_t i = begin; i < end; ++i) values[i] = static_cast<T>(draw(i));
  };
  switch (distribution) {
    case Distribution::kUniform:
      return Uniform(key, begin, end, values);
    case Distribution::kNormal:
      return Normal(key, begin, end, values);
    case Distribution::kExponential:
      return Exponential(key, begin, end, values);
    case Distribution::kCauchy:
      return for_each([&](int64_t i) { return Cauchy(OpenUnitAt<T>(key, i)); });
    case Distribution::kLogNormal:
      Normal(key, begin, end, values);
      return LogNormal(begin, end, parameters, values);
    case Distribution::kGamma:
      return for_each([&](int64_t i) { return std::exp(LogGamma(key, i, first[i])); });
    case Distribution::kLogGamma:
      return for_each([&](int64_t i) { return LogGamma(key, i, first[i]); });
    case Distribution::kPoisson:
      return for_each([&](int64_t i) { return Poisson(key, i, first[i]); });
    case Distribution::kBinomial:
      return for_each([&](int64_t i) { return Binomial(key, i, first[i], second[i]); });
  }
}

template void Draw(Distribution, const Threefry&, int64_t, int64_t, const Parameters<float>&,
                   float*);
template void Draw(Distribution, const Threefry&, int64_t, int64_t, const Parameters<double>&,
                   double*);

}  // namespace torch_xla_lite::kernels
