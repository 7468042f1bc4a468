#include "torch_xla_lite/csrc/runtime/tiering.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>

#include "test/csrc/ir/toy_ops.h"
#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/key.h"
#include "torch_xla_lite/csrc/runtime/costs.h"

namespace torch_xla_lite::runtime {
namespace {

using Decision = Tiering::Decision;
using ir::toy::Call;
using ir::toy::Data;
using ir::toy::Leaf;

// A chain of ops costs 10 for each when it is interpreted, and 100 when it is compiled. Running it
// compiled costs 15, loading it 20 and a tenth of its compilation.
CostModel Model() {
  CostModel model;
  model.Set({{"reversed", {{.call = 10}, {}, 100}},
             {"plus", {{.operand = 1}, {}, 100}},
             {CostModel::kWrite, {{.operand = 1}}}},
            {.execution = 15, .load = 20, .load_part = 0.1});
  return model;
}

Decision Decide(Tiering& tiering, const ir::Graph& graph, const Tiering::Extra& extra = {}) {
  Tiering::Runs* const runs = tiering.Find(graph);
  return tiering.Decide(runs != nullptr ? runs : tiering.Add(graph, extra));
}

ir::Graph Chain(size_t length, size_t size = 1) {
  ir::Value value = Leaf(Data(size, 1));
  for (size_t i = 0; i < length; ++i) value = Call("reversed", {value});
  const ir::Root roots[] = {{&value}};
  return ir::Linearize(roots);
}

class TieringTest : public testing::Test {
 protected:
  // How often the graph is interpreted until it is compiled, if it is not on disk.
  size_t RunsUntilCompiled(const ir::Graph& graph) {
    size_t runs = 0;
    while (Decide(tiering_, graph) != Decision::kCompile) ++runs;
    return runs;
  }

  const CostModel model_ = Model();
  Tiering tiering_{&model_};
};

TEST_F(TieringTest, AGraphIsCompiledWhenItsRunsHaveCostAsMuchAsThat) {
  EXPECT_EQ(RunsUntilCompiled(Chain(2)), 10u);
  EXPECT_EQ(RunsUntilCompiled(Chain(30)), 10u);
}

TEST_F(TieringTest, AGraphWhoseSingleCallsCostMoreThanItIsCompiledAtOnce) {
  EXPECT_EQ(Decide(tiering_, Chain(2), {.compilation = 200}), Decision::kInterpret);
  EXPECT_EQ(Decide(tiering_, Chain(3), {.compilation = 301}), Decision::kCompileNow);
  EXPECT_EQ(Decide(tiering_, Chain(3)), Decision::kCompileNow);
}

TEST_F(TieringTest, AllThatWasInterpretedPaysForTheStartOfTheCompiler) {
  CostModel model;
  model.Set({{"reversed", {{.call = 10}, {}, 100}}}, {.load = 20, .start = 1000});
  Tiering tiering(&model);
  for (int i = 0; i < 25; ++i) EXPECT_EQ(Decide(tiering, Chain(4)), Decision::kInterpret);
  EXPECT_EQ(Decide(tiering, Chain(4)), Decision::kCompile);
  EXPECT_EQ(Decide(tiering, Chain(2)), Decision::kInterpret);
  EXPECT_EQ(Decide(tiering, Chain(2)), Decision::kLoad);
}

TEST_F(TieringTest, CountsWhatItsDecisionsCost) {
  EXPECT_EQ(RunsUntilCompiled(Chain(2)), 10u);
  EXPECT_EQ(tiering_.interpreted(), 10 * 20);
  EXPECT_EQ(tiering_.compiled(), 200);
  // Compiling this pays in no case.
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Decide(tiering_, Chain(1)), Decision::kInterpret);
  EXPECT_EQ(tiering_.interpreted(), 10 * 20 + 50 * 10);
  tiering_.Clear();
  EXPECT_EQ(tiering_.interpreted() + tiering_.compiled(), 0);
}

TEST_F(TieringTest, AProgramPaysAtMostTwiceWhatIsBest) {
  const ir::Graph graph = Chain(5);
  const Costs costs = model_.Of(graph.description());
  double paid = 0;
  bool is_compiled = false;
  for (int runs = 1; runs < 1000; ++runs) {
    if (!is_compiled && Decide(tiering_, graph) == Decision::kCompile) {
      is_compiled = true;
      paid += costs.compilation;
    }
    paid += is_compiled ? costs.execution : costs.interpretation;
    const double best =
        std::min(runs * costs.interpretation, costs.compilation + runs * costs.execution);
    EXPECT_LE(paid, 2 * best) << "after " << runs << " runs";
  }
}

TEST_F(TieringTest, WhatCannotBeInterpretedIsCompiledWhenItIsNew) {
  CostModel model;
  model.Set({{"reversed", {{.call = std::numeric_limits<double>::infinity()}, {}, 100}}},
            {.execution = 15});
  Tiering tiering(&model);
  EXPECT_EQ(Decide(tiering, Chain(1)), Decision::kCompileNow);
}

TEST_F(TieringTest, AProgramOnDiskIsSoughtOnceWhenRunsHaveCostAsMuchAsLoading) {
  const ir::Graph graph = Chain(8);  // 80 for a run, 20 + 80 for loading.
  EXPECT_EQ(Decide(tiering_, graph), Decision::kInterpret);
  EXPECT_EQ(Decide(tiering_, graph), Decision::kInterpret);
  EXPECT_EQ(Decide(tiering_, graph), Decision::kLoad);
  EXPECT_EQ(Decide(tiering_, graph), Decision::kInterpret);
}

TEST_F(TieringTest, AGraphThatCannotBeCompiledStaysHot) {
  const ir::Graph graph = Chain(2);
  RunsUntilCompiled(graph);
  EXPECT_EQ(Decide(tiering_, graph), Decision::kCompile);
  EXPECT_EQ(Decide(tiering_, graph), Decision::kCompile);
}

TEST_F(TieringTest, RunsOfEarlierProcessesCount) {
  const ir::Graph graph = Chain(2);  // 20 for a run, 200 for compiling it.
  const uint64_t structure = graph.structure();
  tiering_.Remember({{structure, {.spent = 150, .processes = 4}}});
  EXPECT_EQ(RunsUntilCompiled(graph), 3u);
  const auto accounts = tiering_.Accounts();
  ASSERT_EQ(accounts.size(), 1u);
  EXPECT_EQ(accounts[0].first, structure);
  const Tiering::Account& account = accounts[0].second;
  EXPECT_EQ(account.spent, 150 + 3 * 20);
  EXPECT_EQ(account.in_earlier_processes, 150);
  EXPECT_EQ(account.processes, 4u);
  EXPECT_EQ(account.needed, 200);
  EXPECT_TRUE(account.pays);
}

TEST_F(TieringTest, AWriteCostsWhatIsWritten) {
  const ir::Value base = Leaf(Data(1000, 1));
  const auto write =
      ir::MakeRef<ir::Signature>("element", std::vector<uint64_t>{1}, std::vector{base.shape()});
  write->written = 0;
  ir::Value operands[] = {base, Leaf({5})};
  const ir::Value value{ir::Node::Create(write.get(), operands, {}), 0};
  const ir::Root roots[] = {{&value}};
  EXPECT_EQ(model_.Of(ir::Linearize(roots).description()).interpretation, 1);
}

TEST_F(TieringTest, OfManyGraphsThoseAreForgottenThatDoNotComeBack) {
  Decide(tiering_, Chain(2));
  for (int op = 0; op < 40'000; ++op) {
    const ir::Value value = Call("op" + std::to_string(op), {Leaf({1})});
    const ir::Root roots[] = {{&value}};
    Decide(tiering_, ir::Linearize(roots));
    if (op % 4000 == 0) Decide(tiering_, Chain(3));
  }
  EXPECT_EQ(Decide(tiering_, Chain(3)), Decision::kCompile);
  EXPECT_EQ(RunsUntilCompiled(Chain(2)), 10u);
}

}  // namespace
}  // namespace torch_xla_lite::runtime
