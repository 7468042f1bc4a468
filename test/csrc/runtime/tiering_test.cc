#include "torch_xla_lite/csrc/runtime/tiering.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "test/csrc/ir/toy_ops.h"
#include "torch_xla_lite/csrc/ir/graph.h"

namespace torch_xla_lite::runtime {
namespace {

using ir::toy::Call;
using ir::toy::Data;
using ir::toy::Leaf;

// One op on a vector of this size.
bool IsHot(Tiering* tiering, size_t size, const std::string& op = "reversed") {
  const ir::Value value = Call(op, {Leaf(Data(size, 1))});
  const ir::Root roots[] = {{&value}};
  return tiering->IsHot(ir::Linearize(roots));
}

// How often the graph is interpreted until it is compiled.
size_t RunsUntilHot(Tiering* tiering, size_t size) {
  size_t runs = 0;
  while (!IsHot(tiering, size)) ++runs;
  return runs;
}

TEST(TieringTest, AGraphIsHotWhenItComesBack) {
  Tiering tiering;
  EXPECT_FALSE(IsHot(&tiering, 1));
  EXPECT_TRUE(IsHot(&tiering, 1));
}

TEST(TieringTest, EachCompiledVariantDoublesWhatTheNextOneTakes) {
  Tiering tiering;
  for (size_t n = 0; n < 8; ++n) EXPECT_EQ(RunsUntilHot(&tiering, n + 1), size_t{1} << n);
}

TEST(TieringTest, VariantsThatAreOnlyInterpretedDelayNothing) {
  Tiering tiering;
  for (size_t size = 1; size <= 20; ++size) EXPECT_FALSE(IsHot(&tiering, size));
  EXPECT_TRUE(IsHot(&tiering, 20));
}

TEST(TieringTest, OtherOpsAreNoVariants) {
  Tiering tiering;
  RunsUntilHot(&tiering, 1);
  EXPECT_FALSE(IsHot(&tiering, 1, "zeros"));
  EXPECT_TRUE(IsHot(&tiering, 1, "zeros"));
}

TEST(TieringTest, TheNumberOfCompiledVariantsGrowsWithTheLogarithmOfTheRuns) {
  Tiering tiering;
  // As 100 texts of 24 words: each length once in each text.
  size_t compiled = 0;
  for (size_t text = 0; text < 100; ++text) {
    for (size_t length = 1; length <= 24; ++length) compiled += IsHot(&tiering, length);
  }
  EXPECT_LE(compiled, 8u);
}

TEST(TieringTest, ClearingForgetsAll) {
  Tiering tiering;
  RunsUntilHot(&tiering, 1);
  tiering.Clear();
  EXPECT_EQ(RunsUntilHot(&tiering, 2), 1u);
}

}  // namespace
}  // namespace torch_xla_lite::runtime
