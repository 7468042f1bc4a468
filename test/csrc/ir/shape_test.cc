#include "torch_xla_lite/csrc/ir/shape.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace torch_xla_lite::ir {
namespace {

constexpr DType kFloat{6};
constexpr DType kDouble{7};

TEST(Shape, EqualShapesAreOneObject) {
  EXPECT_EQ(Shape::Of(kFloat, {8, 3}), Shape::Of(kFloat, std::vector<int64_t>{8, 3}));
}

TEST(Shape, OthersDifferInDtypeDimsOrRank) {
  const std::vector<Ref<const Shape>> shapes = {
      Shape::Of(kFloat, {8, 3}), Shape::Of(kDouble, {8, 3}), Shape::Of(kFloat, {3, 8}),
      Shape::Of(kFloat, {}),     Shape::Of(kFloat, {0}),     Shape::Of(kFloat, {0, 0})};
  std::set<const Shape*> different;
  for (const Ref<const Shape>& shape : shapes) different.insert(shape.get());
  EXPECT_EQ(different.size(), shapes.size());
}

TEST(Shape, TheTextNamesDtypeAndDims) {
  EXPECT_EQ(Shape::Of(kFloat, {8, 3})->ToString(), "dtype6[8,3]");
  EXPECT_EQ(Shape::Of(kDouble, {})->ToString(), "dtype7[]");
}

TEST(Shape, ThreadsThatMeetNewShapesShareThem) {
  std::vector<std::vector<Ref<const Shape>>> shapes(4);
  std::vector<std::thread> threads;
  for (auto& mine : shapes) {
    threads.emplace_back([&mine] {
      for (int64_t i = 0; i < 30'000; ++i) mine.push_back(Shape::Of(kFloat, {7, 7, i}));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& other : shapes) EXPECT_EQ(other, shapes[0]);
}

TEST(Shape, AShapeThatNothingRefersToIsForgotten) {
  std::set<const Shape*> made;
  const Ref<const Shape> kept = Shape::Of(kFloat, {6, 6});
  for (int64_t i = 0; i < 100'000; ++i) made.insert(Shape::Of(kFloat, {5, 6, i}).get());
  // Others are where they were.
  EXPECT_LT(made.size(), 50'000u);
  EXPECT_EQ(Shape::Of(kFloat, {6, 6}), kept);
}

}  // namespace
}  // namespace torch_xla_lite::ir
