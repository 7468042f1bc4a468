#include "torch_xla_lite/csrc/runtime/executable_cache.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "test/csrc/ir/toy_ops.h"
#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/key.h"
#include "torch_xla_lite/csrc/ir/shape.h"

namespace torch_xla_lite::runtime {
namespace {

using ir::KeptKey;
using ir::Value;
using ir::toy::Call;
using ir::toy::Leaf;
using Key = std::vector<uint64_t>;

// A key of as many leaves as there are sizes, and nothing else (ir/graph.cc).
Key KeyOf(const std::vector<uint64_t>& sizes) {
  Key key;
  for (const uint64_t size : sizes) key.push_back(ir::WordOfLeaf(ir::toy::Vector(size)));
  key.push_back(0);
  return key;
}

ir::Graph GraphOf(const Value& root) {
  const ir::Root roots[] = {{&root}};
  return ir::Linearize(roots);
}

ir::Ref<Executable> New() { return ir::Ref<Executable>::Take(new Executable); }

TEST(ExecutableCache, KeysAreComparedWordForWord) {
  ExecutableCache cache(2);
  cache.Insert(KeptKey(KeyOf({1, 2})), New());
  EXPECT_FALSE(cache.Find(KeyOf({})));
  EXPECT_FALSE(cache.Find(KeyOf({1})));
  EXPECT_FALSE(cache.Find(KeyOf({2, 1})));
  EXPECT_FALSE(cache.Find(KeyOf({1, 2, 0})));
}

TEST(ExecutableCache, WhatIsUsedIsNotTheOldest) {
  ExecutableCache cache(2);
  cache.Insert(KeptKey(KeyOf({1})), New());
  cache.Insert(KeptKey(KeyOf({2})), New());
  cache.Find(KeyOf({1}));
  cache.Insert(KeptKey(KeyOf({3})), New());
  EXPECT_TRUE(cache.Find(KeyOf({1})));
  EXPECT_FALSE(cache.Find(KeyOf({2})));
}

TEST(ExecutableCache, TheOlderHalfIsDropped) {
  ExecutableCache cache(8);
  for (uint64_t number = 1; number <= 5; ++number) cache.Insert(KeptKey(KeyOf({number})), New());
  cache.Find(KeyOf({1}));
  cache.DropOlderHalf();
  EXPECT_EQ(cache.size(), 3u);
  for (const uint64_t number : {1, 4, 5}) EXPECT_TRUE(cache.Find(KeyOf({number})));
  for (const uint64_t number : {2, 3}) EXPECT_FALSE(cache.Find(KeyOf({number})));
}

TEST(ExecutableCache, AnExecutableInUseSurvivesBeingDropped) {
  ExecutableCache cache(1);
  cache.Insert(KeptKey(KeyOf({1})), New());
  const auto in_use = cache.Find(KeyOf({1}));
  EXPECT_EQ(in_use->refs(), 2u);
  cache.Insert(KeptKey(KeyOf({2})), New());
  EXPECT_EQ(in_use->refs(), 1u);
}

TEST(ExecutableCache, AThousandExecutablesAreNotMixedUp) {
  ExecutableCache cache(1000);
  std::vector<ir::Ref<Executable>> executables;
  for (uint64_t i = 0; i < 1000; ++i) {
    executables.push_back(New());
    cache.Insert(KeptKey(KeyOf({i / 10, i % 10})), executables.back());
  }
  for (uint64_t i = 0; i < 1000; ++i)
    EXPECT_EQ(cache.Find(KeyOf({i / 10, i % 10})), executables[i]);
}

TEST(ExecutableCache, AnExecutableThatDonatesMoreIsAdaptable) {
  ExecutableCache cache(2);
  const Value donating = Call("plus", {Leaf({1})}, {1});
  const auto executable = New();
  cache.Insert(KeptKey(GraphOf(donating).key), executable);
  const Value kept = Leaf({1});
  const Value root = Call("plus", {kept}, {1});
  ir::Graph graph = GraphOf(root);
  EXPECT_FALSE(cache.Find(graph.key));
  EXPECT_EQ(cache.FindAdaptable(&graph), executable);
  EXPECT_EQ(graph.copied_leaves, std::vector<uint32_t>{0});
  EXPECT_EQ(graph.key, GraphOf(donating).key);
}

TEST(ExecutableCache, AnExecutableThatDonatesLessIsNotAdaptable) {
  ExecutableCache cache(2);
  const Value kept = Leaf({1});
  const Value root = Call("plus", {kept}, {1});
  cache.Insert(KeptKey(GraphOf(root).key), New());
  const Value donating = Call("plus", {Leaf({1})}, {1});
  ir::Graph graph = GraphOf(donating);
  EXPECT_FALSE(cache.FindAdaptable(&graph));
  EXPECT_TRUE(graph.copied_leaves.empty());
}

TEST(ExecutableCache, AnotherStructureIsNotAdaptable) {
  ExecutableCache cache(2);
  const Value other = Call("multiply", {Leaf({1}), Leaf({2})});
  cache.Insert(KeptKey(GraphOf(other).key), New());
  const Value kept = Leaf({1});
  const Value root = Call("add", {kept, Leaf({2})});
  ir::Graph graph = GraphOf(root);
  EXPECT_FALSE(cache.FindAdaptable(&graph));
}

TEST(ExecutableCache, TheRootsOfAnAdaptedGraphAreInTheOrderOfTheExecutable) {
  ExecutableCache cache(2);
  // The first root has no donor, so that it comes last.
  const auto graph_of = [](const Value& x, Value y) {
    const Value sums[] = {Call("element", {x}, {0}), Call("plus", {x}, {1}),
                          Call("plus", {std::move(y)}, {2})};
    return ir::Linearize(std::vector<ir::Root>{{&sums[0]}, {&sums[1]}, {&sums[2]}});
  };
  const Value x = Leaf({1, 2});
  const Value y = Leaf({3, 4});
  const ir::Graph donating = graph_of(x, Leaf({3, 4}));
  cache.Insert(KeptKey(donating.key), New());
  ir::Graph kept = graph_of(x, y);
  EXPECT_NE(kept.key, donating.key);
  ASSERT_TRUE(cache.FindAdaptable(&kept));
  for (size_t i = 0; i < kept.roots.size(); ++i) {
    EXPECT_EQ(kept.roots[i].node->signature().op, donating.roots[i].node->signature().op) << i;
    EXPECT_EQ(kept.roots[i].node->scalars()[0], donating.roots[i].node->scalars()[0]) << i;
  }
}

TEST(ExecutableCache, TheOldestIsNotAdaptableEither) {
  ExecutableCache cache(1);
  // Many, because a reference to what was freed may still work once.
  for (uint64_t size = 1; size <= 100; ++size) {
    const ir::toy::Data data(size, 1);
    const Value donating = Call("plus", {Leaf(data)}, {1});
    cache.Insert(KeptKey(GraphOf(donating).key), New());
    cache.Insert(KeptKey(KeyOf({size})), New());
    const Value kept = Leaf(data);
    const Value root = Call("plus", {kept}, {1});
    ir::Graph graph = GraphOf(root);
    EXPECT_FALSE(cache.FindAdaptable(&graph));
  }
}

TEST(ExecutableCache, TheShapesOfItsKeysLive) {
  ExecutableCache cache(2);
  const auto key_of = [] {
    return Key{ir::WordOfLeaf(ir::Shape::Of(ir::toy::kInt64, {9, 9, 9}).get()), ir::kEnd};
  };
  cache.Insert(KeptKey(key_of()), New());
  for (int64_t i = 0; i < 20'000; ++i) ir::Shape::Of(ir::toy::kInt64, {9, i});
  EXPECT_TRUE(cache.Find(key_of()));
}

}  // namespace
}  // namespace torch_xla_lite::runtime
