// Linearising the step of an optimizer with many parameters. It also prints the time, which must
// grow linearly with their number:
//
//   bazel run -c opt //test/csrc/ir:many_parameters_test

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

#include "test/csrc/ir/toy_ops.h"
#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/key.h"

namespace torch_xla_lite::ir {
namespace {

using toy::Call;
using toy::Leaf;

class ManyParametersTest : public testing::TestWithParam<size_t> {};

TEST_P(ManyParametersTest, EachParameterAndItsStateGiveTheirMemoryToTheNewOnes) {
  std::vector<Value> values;
  std::vector<const Node*> replaced;
  for (size_t i = 0; i < GetParam(); ++i) {
    Value parameter = Leaf({i}), momentum = Leaf({i});
    replaced.insert(replaced.end(), {momentum.node.get(), parameter.node.get()});
    momentum = Call("add", {std::move(momentum), parameter}, {});
    values.push_back(momentum);
    values.push_back(Call("add", {std::move(parameter), std::move(momentum)}, {}));
  }
  std::vector<Root> roots;
  for (size_t i = 0; i < values.size(); ++i) roots.push_back({&values[i], replaced[i]});
  double fastest = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 20; ++round) {
    const auto start = std::chrono::steady_clock::now();
    const Graph graph = Linearize(roots);
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    fastest = std::min(fastest, time.count());
    ASSERT_EQ(graph.roots.size(), values.size());
    const Description description = Describe(graph.key);
    for (const Step& step : description.steps) {
      EXPECT_EQ(step.donated, step.signature == nullptr);
    }
  }
  std::printf("%zu parameters: %.2f us for each\n", GetParam(), fastest / GetParam());
}

INSTANTIATE_TEST_SUITE_P(Parameters, ManyParametersTest, testing::Values(100, 1'000, 10'000));

}  // namespace
}  // namespace torch_xla_lite::ir
