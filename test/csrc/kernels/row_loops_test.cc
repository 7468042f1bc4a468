#include "torch_xla_lite/csrc/kernels/row_loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace torch_xla_lite::kernels {
namespace {

// Numbers of columns around multiples of the vector length.
class RowLengths : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Of, RowLengths, testing::Values(0, 1, 2, 15, 16, 17, 31, 32, 33, 100));

TEST_P(RowLengths, AddRowsAddsColumnsOfAMatrix) {
  const int64_t n = GetParam(), stride = n + 3;
  // 1, 2, ...: their sums are exact.
  std::vector<float> x(2 * stride);
  std::iota(x.begin(), x.end(), 1.0f);
  std::vector<float> total(n, 0.5f);
  AddRows(x.data(), 2, stride, n, total.data());
  for (int64_t i = 0; i < n; ++i) EXPECT_EQ(total[i], x[i] + x[stride + i] + 0.5f);
}

TEST(TakeLarger, KeepsNan) {
  const std::vector<float> rows = {1, NAN, 5, /**/ NAN, 2, 7};
  std::vector<float> best(3, -INFINITY);
  TakeLarger(rows.data(), 2, 3, 3, best.data());
  EXPECT_TRUE(std::isnan(best[0]));
  EXPECT_TRUE(std::isnan(best[1]));
  EXPECT_EQ(best[2], 7);
}

TEST(TakeSmaller, KeepsNan) {
  const std::vector<float> rows = {1, NAN, 5, 5, /**/ NAN, 2, 7, 4};
  std::vector<float> best(4, INFINITY);
  TakeSmaller(rows.data(), 2, 4, 4, best.data());
  EXPECT_TRUE(std::isnan(best[0]));
  EXPECT_TRUE(std::isnan(best[1]));
  EXPECT_EQ(best[2], 5);
  EXPECT_EQ(best[3], 4);
}

TEST(ShareAmongBest, GivesNothingToTheOthers) {
  const std::vector<float> rows = {1, NAN, 5, /**/ 1, 2, 4}, best = {1, NAN, 5};
  std::vector<float> counts(3, 0.0f), out(6, -1.0f);
  CountBest(rows.data(), 2, 3, 3, best.data(), counts.data());
  EXPECT_EQ(counts, (std::vector<float>{2, 1, 1}));
  ShareAmongBest(rows.data(), 2, 3, 3, best.data(), counts.data(), out.data());
  EXPECT_EQ(out, (std::vector<float>{2, 1, 1, /**/ 2, 0, 0}));
}

}  // namespace
}  // namespace torch_xla_lite::kernels
