#include "torch_xla_lite/csrc/kernels/simd_loops.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "torch_xla_lite/csrc/kernels/element.h"

namespace torch_xla_lite::kernels {
namespace {

// 1, 2, ... n: their sums are exact.
std::vector<float> Counting(int64_t n) {
  std::vector<float> x(n);
  std::iota(x.begin(), x.end(), 1.0f);
  return x;
}

template <typename T>
T LargestErrorOfExp(T from, T to, T step) {
  T largest = 0;
  for (T x = from; x < to; x += step) {
    T got;
    ScaledExp(&x, 1, T{0}, T{1}, &got);
    const long double want = std::exp(static_cast<long double>(x));
    largest = std::max(largest, static_cast<T>(std::abs(got - want) / want));
  }
  return largest;
}

TEST(ScaledExp, IsExactToTwoUnitsInTheLastPlace) {
  EXPECT_LE(LargestErrorOfExp<float>(-87, 88, 0.0173f), 2 * 0x1p-23);
  EXPECT_LE(LargestErrorOfExp<double>(-708, 709, 0.0173), 2 * 0x1p-52);
}

TEST(ScaledExp, KnowsTheEdges) {
  const std::vector<float> x = {0, -INFINITY, -200, INFINITY, 100, NAN};
  std::vector<float> y(x.size());
  ScaledExp(x.data(), x.size(), 0.0f, 1.0f, y.data());
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(y[2], 0);
  EXPECT_EQ(y[3], INFINITY);
  EXPECT_EQ(y[4], INFINITY);
  EXPECT_TRUE(std::isnan(y[5]));
}

template <typename T>
T LargestErrorOfTanh(T from, T step) {
  T largest = 0, c = 0, got, h;
  for (T x = from; x < 20; x += step) {
    const T gates[] = {INFINITY, 0, x, 0};  // The new c is tanh(x).
    LstmStep(1, &c, gates, &h, &got);
    const long double want = std::tanh(static_cast<long double>(x));
    largest = std::max(largest, static_cast<T>(std::abs((got - want) / want)));
  }
  return largest;
}

TEST(LstmStep, HasThePrecisionOfTheDtype) {
  EXPECT_LE(LargestErrorOfTanh<float>(1e-20f, 0.000173f), 1e-6);
  EXPECT_LE(LargestErrorOfTanh<double>(1e-20, 0.000173), 1e-13);
}

// Lengths around multiples of the vector length.
class Lengths : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Of, Lengths, testing::Values(0, 1, 2, 15, 16, 17, 31, 32, 33, 100));

TEST_P(Lengths, MaxFindsTheLastElement) {
  const int64_t n = GetParam();
  EXPECT_EQ(Max(Counting(n).data(), n), n == 0 ? -INFINITY : n);
}

TEST_P(Lengths, ExpSumCountsElementsThatAreTheShift) {
  const int64_t n = GetParam();
  const std::vector<float> x(n, 3.0f);
  EXPECT_EQ(ExpSum(x.data(), n, 3.0f), n);
}

TEST_P(Lengths, ScaledExpWritesEveryElementAndNoMore) {
  const int64_t n = GetParam();
  const std::vector<float> x(n, 3.0f);
  std::vector<float> y(n + 1, -1.0f);
  ScaledExp(x.data(), n, 3.0f, 2.0f, y.data());
  for (int64_t i = 0; i < n; ++i) EXPECT_EQ(y[i], 2);
  EXPECT_EQ(y[n], -1);
}

TEST(ExpSum, PassesNanOn) {
  const std::vector<float> x = {1, NAN, 2};
  EXPECT_TRUE(std::isnan(ExpSum(x.data(), 3, 2.0f)));
}

template <typename T>
uint16_t Narrowed(float x) {
  T narrow;
  Narrow(&x, 1, &narrow);
  return narrow.bits;
}

TEST(Narrow, RoundsTiesToEven) {
  EXPECT_EQ(Narrowed<BFloat16>(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(Narrowed<BFloat16>(1.0f + 0x3p-8f), 0x3f82);
  EXPECT_EQ(Narrowed<Half>(1.0f + 0x1p-11f), 0x3c00);
  EXPECT_EQ(Narrowed<Half>(1.0f + 0x3p-11f), 0x3c02);
}

TEST(Narrow, KeepsNanAndInfinity) {
  // A NaN that becomes infinity if its bits are rounded like those of a number.
  EXPECT_EQ(Narrowed<BFloat16>(std::bit_cast<float>(0x7f800001)) & 0x7fff, 0x7fc0);
  EXPECT_EQ(Narrowed<BFloat16>(-INFINITY), 0xff80);
  EXPECT_EQ(Narrowed<Half>(70000.0f), 0x7c00);
}

template <typename T>
void ExpectBothWaysToKeepAllNumbers(uint16_t infinity) {
  for (uint32_t bits = 0; bits < infinity; ++bits) {
    const T before{static_cast<uint16_t>(bits)};
    float wide;
    Widen(&before, 1, &wide);
    ASSERT_EQ(Narrowed<T>(wide), bits);
  }
}

TEST(Widen, IsUndoneByNarrow) {
  ExpectBothWaysToKeepAllNumbers<BFloat16>(0x7f80);
  ExpectBothWaysToKeepAllNumbers<Half>(0x7c00);
}

}  // namespace
}  // namespace torch_xla_lite::kernels
