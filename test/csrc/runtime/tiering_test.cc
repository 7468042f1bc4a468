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

// Whether a graph is compiled that is one op on a vector of this size.
bool Compiles(Tiering* tiering, size_t size, const std::string& op = "reversed") {
  const ir::Value value = Call(op, {Leaf(Data(size, 1))});
  const ir::Root roots[] = {{&value}};
  const ir::Graph graph = ir::Linearize(roots);
  if (!tiering->IsHot(graph)) return false;
  tiering->NoteCompiled(graph);
  return true;
}

// How often the graph is interpreted until it is compiled.
size_t RunsUntilCompiled(Tiering* tiering, size_t size) {
  size_t runs = 0;
  while (!Compiles(tiering, size)) ++runs;
  return runs;
}

TEST(TieringTest, AGraphIsCompiledWhenItComesBack) {
  Tiering tiering;
  EXPECT_FALSE(Compiles(&tiering, 1));
  EXPECT_TRUE(Compiles(&tiering, 1));
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
    ir::Value value = Leaf(Data(3, 1));
    for (size_t i = 0; i < length; ++i) value = Call("reversed", {value});
    const ir::Root roots[] = {{&value}};
    const ir::Graph graph = ir::Linearize(roots);
    size_t runs = 0;
    while (!tiering.IsHot(graph)) ++runs;
    tiering.NoteCompiled(graph);
    EXPECT_EQ(runs, size_t{1} << (length - 1));
  }
}

TEST(TieringTest, GraphsWithMoreResultsAreNoVariants) {
  Tiering tiering;
  RunsUntilCompiled(&tiering, 1);
  const ir::Value one = Call("reversed", {Leaf(Data(1, 1))});
  const ir::Value other = Call("reversed", {one});
  const ir::Root roots[] = {{&one}, {&other}};
  const ir::Graph graph = ir::Linearize(roots);
  EXPECT_FALSE(tiering.IsHot(graph));
  EXPECT_TRUE(tiering.IsHot(graph));
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
  const ir::Value value = Call("reversed", {Leaf({1})});
  const ir::Root roots[] = {{&value}};
  const ir::Graph graph = ir::Linearize(roots);
  EXPECT_FALSE(tiering.IsHot(graph));
  EXPECT_TRUE(tiering.IsHot(graph));
  EXPECT_TRUE(tiering.IsHot(graph));
}

TEST(TieringTest, ClearingForgetsAll) {
  Tiering tiering;
  RunsUntilCompiled(&tiering, 1);
  tiering.Clear();
  EXPECT_EQ(RunsUntilCompiled(&tiering, 2), 1u);
}

}  // namespace
}  // namespace torch_xla_lite::runtime
