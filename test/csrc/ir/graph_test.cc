#include "torch_xla_lite/csrc/ir/graph.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

#include "test/csrc/ir/toy_ops.h"
#include "torch_xla_lite/csrc/ir/donation.h"
#include "torch_xla_lite/csrc/ir/key.h"
#include "torch_xla_lite/csrc/ir/placement.h"

namespace torch_xla_lite::ir {
namespace {

using toy::Call;
using toy::Data;
using toy::DataOf;
using toy::HostBuffer;
using toy::Leaf;
using toy::Result;
using Key = std::vector<uint64_t>;

// The graph of the values, to each of which only one holder refers.
template <typename... Values>
Graph GraphOf(const Values&... holders) {
  const std::array<Root, sizeof...(holders)> roots{Root{&holders}...};
  return Linearize(roots);
}

template <typename... Values>
Key KeyOf(const Values&... holders) {
  return GraphOf(holders...).key;
}

std::vector<Data> Evaluate(const Graph& graph) {
  return toy::Interpret(Describe(graph.key), DataOf(graph.leaves), graph.scalars);
}

void Compute(const Graph& graph) {
  std::vector<Ref<Buffer>> results;
  for (Data& data : Evaluate(graph)) {
    results.push_back(Ref<Buffer>::Take(new HostBuffer(std::move(data))));
  }
  Commit(graph, std::move(results));
}

int NumDonated(const Graph& graph) {
  int count = 0;
  for (const Step& step : Describe(graph.key).steps) count += step.donated;
  return count;
}

// x + x, where nothing else refers to x.
Value DoubledTemporary(Data x) {
  std::vector<Value> operands(2, Leaf(std::move(x)));
  return Call("add", std::move(operands));
}

TEST(Key, ACallAloneHasTheKeyOfTheGraphThatItIs) {
  const Value x = Leaf({1, 2}), y = Leaf({3, 4});
  const Value sum = Call("add", {x, y});
  const std::array operands{x.shape(), y.shape()};
  EXPECT_EQ(KeyOfCall(sum.node->signature(), operands, 0), KeyOf(sum));
  const Value more = Call("plus", {x}, {5});
  EXPECT_EQ(KeyOfCall(more.node->signature(), std::span(operands).first(1), 1), KeyOf(more));
}

TEST(Key, GraphsOfOneStructureHaveEqualKeys) {
  EXPECT_EQ(KeyOf(DoubledTemporary({1, 2})), KeyOf(DoubledTemporary({3, 4})));
}

TEST(Key, ADonatedLeafIsAnotherKey) {
  const Value donating = DoubledTemporary({1});
  const Value x = Leaf({1});
  EXPECT_NE(KeyOf(donating), KeyOf(Call("add", {x, x})));
}

TEST(Key, RuntimeScalarsAreNotInIt) {
  const Value x = Leaf({1});
  const Value one = Call("plus", {x}, {1});
  const Value two = Call("plus", {x}, {2});
  EXPECT_EQ(KeyOf(one), KeyOf(two));
  EXPECT_EQ(GraphOf(two).scalars, std::vector<uint64_t>{2});
}

TEST(Linearize, ASharedNodeIsComputedOnce) {
  const Value x = Leaf({3});
  const Value y = Call("plus", {x}, {1});
  const Graph graph = GraphOf(Call("multiply", {y, y}), Call("add", {y, x}));
  EXPECT_EQ(graph.leaves.size(), 1u);
  EXPECT_EQ(graph.nodes.size(), 4u);
  EXPECT_EQ(Evaluate(graph), (std::vector<Data>{{16}, {7}}));
}

TEST(Linearize, HoldersOfOneValueShareOneRoot) {
  const Value x = Leaf({3});
  const Value y = Call("plus", {x}, {1});
  const Graph graph = GraphOf(y, y);
  EXPECT_EQ(graph.roots.size(), 1u);
  EXPECT_EQ(graph.key, KeyOf(y));
}

TEST(Linearize, NodesStandInTheOrderOfTheSteps) {
  const Value x = Leaf({3});
  const Value y = Call("plus", {x}, {10});
  const Value z = Call("add", {x, y});
  const Graph graph = GraphOf(z);
  EXPECT_EQ(graph.nodes, (std::vector<Node*>{x.node.get(), y.node.get(), z.node.get()}));
}

TEST(Linearize, AChainOfAMillionNodesNeedsNoRecursion) {
  const Signature signature("plus", {}, {toy::Vector(1)});
  const uint64_t one = 1;
  Value last = Leaf({0});
  for (int i = 0; i < 1'000'000; ++i) {
    std::array<Value, 1> operands{std::move(last)};
    last = {Node::Create(&signature, operands, {&one, 1}), 0};
  }
  EXPECT_EQ(Evaluate(GraphOf(last)), (std::vector<Data>{{1'000'000}}));
}

TEST(Linearize, ANodeMayHaveMoreResultsThanFitIntoSixteenBits) {
  const std::vector<const Shape*> outputs(70'000, toy::Vector(1));
  const Signature signature("unbind", {}, outputs);
  std::array<Value, 1> operands{Leaf({1})};
  const Value result{Node::Create(&signature, operands, {}), 66'000};
  const Position root = Describe(KeyOf(result)).roots[0];
  EXPECT_EQ(root.step, 1u);
  EXPECT_EQ(root.output, 66'000u);
}

// --- meshes --------------------------------------------------------------------------------------

constexpr Placement kRows = ReplicatedOn(1) | 1;

class PlacedBuffer final : public Buffer {
 public:
  explicit PlacedBuffer(Placement placement) : placement_(placement) {}
  bool IsExclusive() const override { return true; }
  Placement placement() const override { return placement_; }

 private:
  const Placement placement_;
};

Value PlacedLeaf(Placement placement) {
  return {Node::Leaf(toy::Vector(2), Ref<Buffer>::Take(new PlacedBuffer(placement))), 0};
}

// x + y, where nothing else refers to the leaves.
Value SumOf(Placement x, Placement y) { return Call("add", {PlacedLeaf(x), PlacedLeaf(y)}); }

TEST(Mesh, TheKeyOfAGraphOnOneDeviceHasNoPlacements) {
  const Value sum = SumOf(kOneDevice, kOneDevice);
  const Root root{.value = &sum, .placement = kOneDevice};
  const Graph graph = Linearize({&root, 1});
  EXPECT_EQ(graph.key.size(), 2u + 4u + 1u + 1u);
  EXPECT_TRUE(Describe(graph.key).leaf_placements.empty());
}

// In its first step the state of an optimizer is on one device, and then on each.
TEST(Mesh, WhatIsOnOneDeviceCountsAsOnEach) {
  const Value first = SumOf(kRows, kOneDevice), second = SumOf(kRows, ReplicatedOn(1));
  const Root roots[] = {{.value = &first, .placement = kOneDevice},
                        {.value = &second, .placement = ReplicatedOn(1)}};
  const Graph graph = Linearize({&roots[0], 1});
  EXPECT_EQ(graph.key, Linearize({&roots[1], 1}).key);
  const Description description = Describe(graph.key);
  EXPECT_EQ(description.leaf_placements, (std::vector{kRows, ReplicatedOn(1)}));
  EXPECT_EQ(description.root_placements, (std::vector{ReplicatedOn(1)}));
}

TEST(Mesh, ALeafIsDonatedToAResultInTheSamePlace) {
  const Value sum = SumOf(ReplicatedOn(1), kRows);
  for (const Placement placement : {ReplicatedOn(1), kRows, kAnywhere}) {
    const Root root{.value = &sum, .placement = placement};
    const std::vector<Step> steps = Describe(Linearize({&root, 1}).key).steps;
    EXPECT_EQ(steps[0].donated, placement == ReplicatedOn(1));
    EXPECT_EQ(steps[1].donated, placement == kRows);
  }
}

TEST(Mesh, AGraphIsAdaptedWithThePlacesOfItsResults) {
  const Value x = PlacedLeaf(kRows), y = PlacedLeaf(ReplicatedOn(1));
  const Value sum = Call("add", {x, y}), difference = Call("add", {sum, y});
  const Root roots[] = {{.value = &sum, .placement = kRows},
                        {.value = &difference, .placement = kAnywhere}};
  const Root reversed[] = {roots[1], roots[0]};
  const Graph graph = Linearize(roots);
  Graph other = Linearize(reversed);
  EXPECT_EQ(StructureOf(graph.key), StructureOf(other.key));
  EXPECT_TRUE(AdaptTo(graph.key, &other));
  EXPECT_EQ(other.key, graph.key);
  EXPECT_EQ(other.root_placements, graph.root_placements);
  EXPECT_EQ(other.roots[0].node.get(), sum.node.get());
}

// One call with a result for each of many parameters, as optimizers that work on lists record it.
// It is so large that a search through all roots for each root would time out.
TEST(Linearize, AnOpOnManyParametersDonatesEachToItsResult) {
  constexpr uint32_t kNumParameters = 1'000'000;
  const std::vector<const Shape*> outputs(kNumParameters, toy::Vector(1));
  const Signature signature("update", {}, outputs);
  std::vector<Value> parameters;
  for (uint32_t i = 0; i < kNumParameters; ++i) parameters.push_back(Leaf({1}));
  Ref<Node> update = Node::Create(&signature, parameters, {});
  std::vector<Value> results;
  std::vector<Root> roots;
  for (uint32_t i = 0; i < kNumParameters; ++i) results.push_back({update, i});
  // Every other one says what it replaces.
  for (uint32_t i = 0; i < kNumParameters; ++i) {
    roots.push_back({&results[i], i % 2 == 0 ? nullptr : parameters[i].node.get()});
  }
  parameters.clear();
  update = {};
  const Graph graph = Linearize(roots);
  EXPECT_EQ(graph.roots.size(), kNumParameters);
  EXPECT_EQ(NumDonated(graph), static_cast<int>(kNumParameters));
}

TEST(Donation, ALeafThatOnlyTheGraphHoldsIsDonated) {
  EXPECT_EQ(NumDonated(GraphOf(DoubledTemporary({1, 2}))), 1);
}

TEST(Donation, ALeafWhoseDataOthersSeeIsNot) {
  Value x = Leaf({1});
  static_cast<HostBuffer*>(x.buffer())->is_exclusive = false;
  const Value root = Call("plus", {std::exchange(x, {})}, {1});
  EXPECT_EQ(NumDonated(GraphOf(root)), 0);
}

TEST(Donation, ALeafThatNoRootHasTheShapeOfIsNot) {
  const Value root = Call("element", {DoubledTemporary({1, 2})}, {0});
  EXPECT_EQ(NumDonated(GraphOf(root)), 0);
}

TEST(Donation, ARootTakesTheMemoryOfOneLeaf) {
  const Value root = Call("add", {Leaf({1}), Leaf({2})});
  EXPECT_EQ(NumDonated(GraphOf(root)), 1);
}

TEST(Donation, TwoRootsTakeTheMemoryOfTwoLeaves) {
  const Value sum = Call("sum_difference", {Leaf({1}), Leaf({2})});
  const Value difference = Result(sum, 1);
  EXPECT_EQ(NumDonated(GraphOf(sum, difference)), 2);
}

// Two roots, the second of which is computed from the first leaf.
struct Swapped {
  Value first = Leaf({1});
  Value second = Leaf({2});
  const Node* first_leaf = first.node.get();
  const Node* second_leaf = second.node.get();
  Value from_second = Call("plus", {std::move(second)}, {1});
  Value from_first = Call("add", {std::move(first), from_second});

  std::array<Root, 2> Replacing(const Node* first_leaf, const Node* second_leaf) const {
    return {Root{&from_second, first_leaf}, Root{&from_first, second_leaf}};
  }
};

TEST(Donation, ARootTakesTheMemoryOfWhatItReplaces) {
  Swapped values;
  const auto roots = values.Replacing(values.first_leaf, values.second_leaf);
  const Graph graph = Linearize(roots);
  ASSERT_EQ(NumDonated(graph), 2);
  // Donated leaves and their roots are in the same order.
  for (size_t i = 0; i < 2; ++i) {
    const bool is_first = graph.leaves[i].node.get() == values.first_leaf;
    EXPECT_EQ(graph.roots[i].node, (is_first ? values.from_second : values.from_first).node);
  }
}

TEST(Donation, WhatARootReplacesIsPartOfTheKey) {
  Swapped values, others;
  const auto kept = values.Replacing(values.first_leaf, values.second_leaf);
  const auto swapped = others.Replacing(others.second_leaf, others.first_leaf);
  EXPECT_NE(Linearize(kept).key, Linearize(swapped).key);
}

TEST(Donation, ALeafThatIsGoneIsReplacedByNothing) {
  const Value root = Call("plus", {Leaf({1})}, {1});
  const std::array roots{Root{&root, reinterpret_cast<const Node*>(8)}};
  EXPECT_EQ(NumDonated(Linearize(roots)), 1);
}

TEST(Donation, ALeafBelowAnIntermediateThatIsARootItselfIsDonated) {
  const Value first = Call("plus", {DoubledTemporary({1})}, {2});
  const Value second = Call("plus", {first}, {3});
  EXPECT_EQ(NumDonated(GraphOf(first, second)), 1);
}

// The root has become a leaf when the other root is computed.
TEST(Donation, ALeafBelowARootThatAnotherPendingValueNeedsIsDonated) {
  const Value root = Call("plus", {DoubledTemporary({1})}, {2});
  const Value other = Call("plus", {root}, {3});
  EXPECT_EQ(NumDonated(GraphOf(root)), 1);
}

TEST(Donation, AResultOfANodeWithSeveralIsDonated) {
  Value sum = Call("sum_difference", {Leaf({5}), Leaf({3})});
  Compute(GraphOf(sum));
  const Value root = Call("plus", {std::exchange(sum, {})}, {1});
  EXPECT_EQ(NumDonated(GraphOf(root)), 1);
}

TEST(Donation, ABufferThatTwoLeavesShareIsNot) {
  const Value x = Leaf({5});
  Value same{Node::Leaf(x.shape(), Ref<Buffer>::Share(x.buffer())), 0};
  const Value root = Call("plus", {std::exchange(same, {})}, {1});
  EXPECT_EQ(NumDonated(GraphOf(root)), 0);
}

TEST(Commit, LetsGoOfWhatTheResultsWereComputedFrom) {
  const Value x = Leaf({5});
  const Value y = Call("plus", {x}, {1});
  Compute(GraphOf(y));
  EXPECT_EQ(x.node->refs(), 1u);
}

}  // namespace
}  // namespace torch_xla_lite::ir
