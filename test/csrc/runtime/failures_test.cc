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

TEST(NodesThatNeed, HasTheCallsAndAllThatIsComputedFromThem) {
  const Value failed = Call("fail", {Leaf({1})});
  const Value dependent = Call("plus", {failed}, {1});
  const Value other = Call("plus", {Leaf({1})}, {1});
  const std::vector<Root> roots = {Root{&dependent}, Root{&other}};
  EXPECT_EQ(NodesThatNeed({failed.node}, roots), (NodeSet{NodeOf(failed), NodeOf(dependent)}));
  EXPECT_TRUE(NodesThatNeed({}, roots).empty());
}

}  // namespace
}  // namespace torch_xla_lite::runtime
