#include "torch_xla_lite/csrc/kernels/online_softmax.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace torch_xla_lite::kernels {
namespace {

constexpr int kLanes = 32;

double LogSumExp(const OnlineSoftmax<double>& softmax) {
  return softmax.Shift() + std::log(softmax.sum);
}

// As a warp computes it on the GPU: each lane adds every 32nd element, then lanes merge in pairs.
// All lanes must end with the same value.
double OfWarp(const std::vector<double>& x) {
  std::array<OnlineSoftmax<double>, kLanes> lanes;
  for (size_t i = 0; i < x.size(); ++i) lanes[i % kLanes].Add<1>({x[i]});
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    const auto before = lanes;
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane].Merge(before[lane ^ distance]);
  }
  for (const auto& lane : lanes) {
    const double value = LogSumExp(lane), first = LogSumExp(lanes[0]);
    EXPECT_TRUE(value == first || (std::isnan(value) && std::isnan(first)));
  }
  return LogSumExp(lanes[0]);
}

double Expected(const std::vector<double>& x) {
  double sum = 0;
  for (const double element : x) sum += std::exp(element);
  return std::log(sum);
}

TEST(OnlineSoftmax, OfAWarpIsThatOfAllElements) {
  std::vector<double> x;
  for (int i = 0; i < 100; ++i) {
    x.push_back(std::sin(i) * 20);
    EXPECT_NEAR(OfWarp(x), Expected(x), 1e-12) << x.size() << " elements";
  }
}

TEST(OnlineSoftmax, OfSeveralAtATimeIsThatOfSingleElements) {
  OnlineSoftmax<double> packs, single;
  for (double x = -3; x < 3; x += 0.5) {
    packs.Add<4>({x, 2 * x, -x, 1.0});
    for (const double element : {x, 2 * x, -x, 1.0}) single.Add<1>({element});
  }
  EXPECT_NEAR(LogSumExp(packs), LogSumExp(single), 1e-14);
}

TEST(OnlineSoftmax, DoesNotOverflow) { EXPECT_EQ(OfWarp({1e300, -1e300, 3}), 1e300); }

TEST(OnlineSoftmax, OfNothingIsMinusInfinity) { EXPECT_EQ(OfWarp({}), -INFINITY); }

TEST(OnlineSoftmax, OfMinusInfinityAloneIsMinusInfinity) {
  EXPECT_EQ(OfWarp(std::vector<double>(40, -INFINITY)), -INFINITY);
}

TEST(OnlineSoftmax, MinusInfinityAddsNothing) { EXPECT_EQ(OfWarp({-INFINITY, 5, -INFINITY}), 5); }

TEST(OnlineSoftmax, NanAndInfinityMakeNan) {
  EXPECT_TRUE(std::isnan(OfWarp({1, std::nan(""), 2})));
  EXPECT_TRUE(std::isnan(OfWarp({-INFINITY, std::nan("")})));
  EXPECT_TRUE(std::isnan(OfWarp({1, INFINITY, 2})));
}

}  // namespace
}  // namespace torch_xla_lite::kernels
