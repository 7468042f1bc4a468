#include "torch_xla_lite/csrc/runtime/failures.h"

#include <gtest/gtest.h>

#include <vector>

#include "test/csrc/ir/toy_ops.h"
#include "torch_xla_lite/csrc/ir/graph.h"

namespace torch_xla_lite::runtime {
namespace {

using ir::Root;
using ir::Value;
using ir::toy::Call;
using ir::toy::Leaf;

const ir::Node* NodeOf(const Value& value) { return value.node.get(); }

TEST(ResultsOf, HasEachPendingCallOfTheOpInTheOrderInWhichTheyRun) {
  const Value first = Call("plus", {Leaf({1})}, {1});
  const Value second = Call("plus", {Call("add", {first, first})}, {1});
  const std::vector<Value> results = ResultsOf("plus", {Root{&second}});
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].node, first.node);
  EXPECT_EQ(results[1].node, second.node);
  EXPECT_TRUE(ResultsOf("fail", {Root{&second}}).empty());
}

TEST(NodesThatNeed, HasTheCallsAndAllThatIsComputedFromThem) {
  const Value failed = Call("fail", {Leaf({1})});
  const Value dependent = Call("plus", {failed}, {1});
  const Value other = Call("plus", {Leaf({1})}, {1});
  const std::vector<Root> roots = {Root{&dependent}, Root{&other}};
  EXPECT_EQ(NodesThatNeed({failed.node}, roots), (NodeSet{NodeOf(failed), NodeOf(dependent)}));
  EXPECT_TRUE(NodesThatNeed({}, roots).empty());
}

TEST(MarkSuspects, MarksTheCallsWithTheLargestResults) {
  const Value small = Call("plus", {Leaf({1})}, {1});
  const Value large = Call("plus", {Leaf({1, 2})}, {1});
  const std::vector<Root> roots = {Root{&small}, Root{&large}};
  MarkSuspects(roots, /*all=*/false);
  EXPECT_EQ(NodesThatNeedSuspects(roots), NodeSet{NodeOf(large)});
  // A graph that has suspects gets no more.
  MarkSuspects(roots, /*all=*/true);
  EXPECT_FALSE(small.node->is_suspect);
}

TEST(MarkSuspects, MarksAllCallsOnRequest) {
  const Value small = Call("plus", {Leaf({1})}, {1});
  const Value large = Call("plus", {Leaf({1, 2})}, {1});
  const std::vector<Root> roots = {Root{&small}, Root{&large}};
  MarkSuspects(roots, /*all=*/true);
  EXPECT_EQ(NodesThatNeedSuspects(roots), (NodeSet{NodeOf(small), NodeOf(large)}));
}

}  // namespace
}  // namespace torch_xla_lite::runtime
