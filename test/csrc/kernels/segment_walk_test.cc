#include "torch_xla_lite/csrc/kernels/segment_walk.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace torch_xla_lite::kernels {
namespace {

Offsets Of(const std::vector<int64_t>& values, int64_t rows) {
  return {values.data(), true, static_cast<int64_t>(values.size()) - 1, rows};
}

// The number of times that the two kernels read each row: first the chunks that lie in one segment,
// then the remaining rows of each segment, and its chunks.
std::vector<int> VisitsOfRows(const Offsets& offsets) {
  std::vector<int> visits(offsets.rows);
  std::vector<int64_t> segment_of_chunk(offsets.chunks());
  for (int64_t chunk = 0; chunk < offsets.chunks(); ++chunk) {
    segment_of_chunk[chunk] = offsets.SegmentOfChunk(chunk);
  }
  const auto visit = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) ++visits.at(row);
  };
  for (int64_t segment = 0; segment < offsets.segments; ++segment) {
    if (!offsets.IsRange(segment)) continue;
    const Parts parts = PartsOf(offsets[segment], offsets[segment + 1]);
    visit(parts.first.begin, parts.first.end);
    visit(parts.last.begin, parts.last.end);
    for (int64_t chunk = parts.chunks.begin; chunk < parts.chunks.end; ++chunk) {
      // Otherwise the sum of the chunk has not been stored.
      EXPECT_EQ(segment_of_chunk.at(chunk), segment);
      visit(chunk * kChunkRows, (chunk + 1) * kChunkRows);
    }
  }
  return visits;
}

void ExpectEachRowOnce(const std::vector<int64_t>& values, int64_t rows) {
  const auto visits = VisitsOfRows(Of(values, rows));
  for (int64_t row = 0; row < rows; ++row) {
    const bool inside = values.front() <= row && row < values.back();
    ASSERT_EQ(visits[row], inside ? 1 : 0) << "row " << row;
  }
}

TEST(Walk, ReadsEachRowOfASegmentOnce) {
  ExpectEachRowOnce({0, 1000}, 1000);
  ExpectEachRowOnce({0, 256, 512}, 512);
  ExpectEachRowOnce({100, 100, 700, 701, 1024, 1024}, 1100);
  ExpectEachRowOnce({0, 0, 255, 257, 257, 600}, 600);
  ExpectEachRowOnce({0}, 300);
}

TEST(Walk, ReadsEachRowOfRandomSegmentsOnce) {
  std::mt19937 random(0);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<int64_t> values = {static_cast<int64_t>(random() % 300)};
    const int segments = random() % 8;
    for (int i = 0; i < segments; ++i) values.push_back(values.back() + random() % 900 % 700);
    ExpectEachRowOnce(values, values.back() + random() % 300);
  }
}

TEST(Walk, FindsTheSegmentOfEachRow) {
  const std::vector<int64_t> values = {2, 4, 4, 7};
  const Offsets offsets = Of(values, 9);
  const std::vector<int64_t> expected = {-1, -1, 0, 0, 2, 2, 2, -1, -1};
  for (int64_t row = 0; row < 9; ++row) EXPECT_EQ(offsets.SegmentOf(row), expected[row]);
}

TEST(Walk, OfWrongOffsetsStaysWithinTheRows) {
  std::mt19937 random(0);
  for (int trial = 0; trial < 200; ++trial) {
    const int64_t rows = random() % 1000;
    std::vector<int64_t> values;
    for (int i = 0; i < 6; ++i) values.push_back(static_cast<int64_t>(random() % 3000) - 1000);
    const Offsets offsets = Of(values, rows);
    for (int64_t segment = 0; segment < offsets.segments; ++segment) {
      if (!offsets.IsRange(segment)) continue;
      const Parts parts = PartsOf(offsets[segment], offsets[segment + 1]);
      EXPECT_GE(parts.first.begin, 0);
      EXPECT_LE(parts.last.end, rows);
      EXPECT_LE(parts.chunks.end, offsets.chunks());
    }
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t segment = offsets.SegmentOf(row);
      ASSERT_TRUE(segment == -1 || (offsets[segment] <= row && row < offsets[segment + 1]));
    }
  }
}

TEST(Walk, NarrowOffsetsAreReadAsSuch) {
  const std::vector<int32_t> values = {0, 3, -1};
  const Offsets offsets = {values.data(), false, 2, 5};
  EXPECT_EQ(offsets[1], 3);
  EXPECT_EQ(offsets[2], -1);
}

class Widths : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Of, Widths, testing::Values(1, 2, 3, 5, 8, 31, 32, 33, 1000));

TEST_P(Widths, LanesOfAWarpHaveDifferentPlaces) {
  const Lanes lanes = LanesFor(GetParam());
  std::vector<int> taken(kWarp);
  for (int lane = 0; lane < kWarp; ++lane) {
    ASSERT_LT(lanes.row(lane), lanes.rows());
    ++taken[lanes.row(lane) * lanes.columns + lanes.column(lane)];
  }
  EXPECT_EQ(taken, std::vector<int>(kWarp, 1));
}

}  // namespace
}  // namespace torch_xla_lite::kernels
