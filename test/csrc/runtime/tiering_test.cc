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

// An op on a vector of so many elements is not small.
constexpr size_t kLarge = size_t{1} << 14;

// Whether a graph is hot that is one op on a vector of this size.
bool IsHot(Tiering* tiering, size_t size, bool is_waited_for) {
  const ir::Value value = Call("reversed", {Leaf(Data(size, 1))});
  const ir::Root roots[] = {{&value}};
  return tiering->IsHot(ir::Linearize(roots), is_waited_for);
}

// Whether the graph of one op on a large vector, one of many sizes, is compiled.
bool Compiles(Tiering* tiering, size_t number, const std::string& op = "reversed") {
  const ir::Value value = Call(op, {Leaf(Data(kLarge + number, 1))});
  const ir::Root roots[] = {{&value}};
  const ir::Graph graph = ir::Linearize(roots);
  if (!tiering->IsHot(graph, /*is_waited_for=*/true)) return false;
  tiering->NoteCompiled(graph);
  return true;
}

// How often the graph is interpreted until it is compiled.
size_t RunsUntilCompiled(Tiering* tiering, size_t number) {
  size_t runs = 0;
  while (!Compiles(tiering, number)) ++runs;
  return runs;
}

TEST(TieringTest, AGraphIsCompiledWhenItComesBack) {
  Tiering tiering;
  EXPECT_FALSE(Compiles(&tiering, 1));
  EXPECT_TRUE(Compiles(&tiering, 1));
}

TEST(TieringTest, AGraphOfSmallArraysIsInterpretedAThousandTimes) {
  Tiering tiering;
  for (int run = 0; run < 1024; ++run) {
    EXPECT_FALSE(IsHot(&tiering, kLarge - 1, /*is_waited_for=*/true));
  }
  EXPECT_TRUE(IsHot(&tiering, kLarge - 1, /*is_waited_for=*/true));
}

TEST(TieringTest, AGraphOfSmallArraysThatNothingWaitsForIsHotWhenItComesBack) {
  Tiering tiering;
  EXPECT_FALSE(IsHot(&tiering, 1, /*is_waited_for=*/false));
  EXPECT_TRUE(IsHot(&tiering, 1, /*is_waited_for=*/false));
}

TEST(TieringTest, EachCompiledVariantDoublesWhatTheNextOneTakes) {
  Tiering tiering;
  for (size_t n = 0; n < 7; ++n) EXPECT_EQ(RunsUntilCompiled(&tiering, n + 1), size_t{1} << n);
}

TEST(TieringTest, FewVariantsThatAreOnlyInterpretedDelayNothing) {
  Tiering tiering;
  for (size_t size = 1; size <= 7; ++size) EXPECT_FALSE(Compiles(&tiering, size));
  EXPECT_TRUE(Compiles(&tiering, 7));
}

TEST(TieringTest, EightVariantsThatAreOnlyInterpretedTakeOneMoreRun) {
  Tiering tiering;
  for (size_t size = 1; size <= 40; ++size) EXPECT_FALSE(Compiles(&tiering, size));
  EXPECT_EQ(RunsUntilCompiled(&tiering, 40), 5u);
}

TEST(TieringTest, OtherOpsAreNoVariants) {
  Tiering tiering;
  RunsUntilCompiled(&tiering, 1);
  EXPECT_FALSE(Compiles(&tiering, 1, "zeros"));
  EXPECT_TRUE(Compiles(&tiering, 1, "zeros"));
}

TEST(TieringTest, PathsThroughAProgramAreVariants) {
  Tiering tiering;
  // As a loop that runs as often as the data says: chains of one to seven ops.
  for (size_t length = 1; length <= 7; ++length) {
    ir::Value value = Leaf(Data(kLarge, 1));
    for (size_t i = 0; i < length; ++i) value = Call("reversed", {value});
    const ir::Root roots[] = {{&value}};
    const ir::Graph graph = ir::Linearize(roots);
    size_t runs = 0;
    while (!tiering.IsHot(graph, /*is_waited_for=*/true)) ++runs;
    tiering.NoteCompiled(graph);
    EXPECT_EQ(runs, size_t{1} << (length - 1));
  }
}

TEST(TieringTest, GraphsWithMoreResultsAreNoVariants) {
  Tiering tiering;
  RunsUntilCompiled(&tiering, 1);
  const ir::Value one = Call("reversed", {Leaf(Data(kLarge, 1))});
  const ir::Value other = Call("reversed", {one});
  const ir::Root roots[] = {{&one}, {&other}};
  const ir::Graph graph = ir::Linearize(roots);
  EXPECT_FALSE(tiering.IsHot(graph, /*is_waited_for=*/true));
  EXPECT_TRUE(tiering.IsHot(graph, /*is_waited_for=*/true));
}

TEST(TieringTest, TheNumberOfCompiledVariantsGrowsWithTheLogarithmOfTheRuns) {
  Tiering tiering;
  // As 100 texts of 24 words: each length once in each text.
  size_t compiled = 0;
  for (size_t text = 0; text < 100; ++text) {
    for (size_t length = 1; length <= 24; ++length) compiled += Compiles(&tiering, length);
  }
  EXPECT_LE(compiled, 8u);
}

TEST(TieringTest, AGraphThatCannotBeCompiledStaysHot) {
  Tiering tiering;
  EXPECT_FALSE(IsHot(&tiering, kLarge, /*is_waited_for=*/true));
  EXPECT_TRUE(IsHot(&tiering, kLarge, /*is_waited_for=*/true));
  EXPECT_TRUE(IsHot(&tiering, kLarge, /*is_waited_for=*/true));
}

TEST(TieringTest, ClearingForgetsAll) {
  Tiering tiering;
  RunsUntilCompiled(&tiering, 1);
  tiering.Clear();
  EXPECT_EQ(RunsUntilCompiled(&tiering, 2), 1u);
}

}  // namespace
}  // namespace torch_xla_lite::runtime
