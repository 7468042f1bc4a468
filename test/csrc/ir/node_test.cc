#include "torch_xla_lite/csrc/ir/node.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <utility>
#include <vector>

#include "test/csrc/ir/toy_ops.h"

namespace torch_xla_lite::ir {
namespace {

// Buffers whose destruction is counted.
class WatchedBuffer final : public Buffer {
 public:
  explicit WatchedBuffer(bool* is_gone) : is_gone_(is_gone) {}
  ~WatchedBuffer() override { *is_gone_ = true; }
  bool IsExclusive() const override { return true; }

 private:
  bool* is_gone_;
};

Ref<Buffer> Watched(bool* is_gone) { return Ref<Buffer>::Take(new WatchedBuffer(is_gone)); }

TEST(Node, LeavesOfOneShapeShareTheirSignature) {
  EXPECT_EQ(&toy::Leaf({1, 2}).node->signature(), &toy::Leaf({3, 4}).node->signature());
  EXPECT_NE(&toy::Leaf({1, 2}).node->signature(), &toy::Leaf({3}).node->signature());
}

TEST(Node, TakesItsOperandsOver) {
  const Signature signature("add", {}, {toy::Vector(1)});
  std::array<Value, 2> operands{toy::Leaf({1}), toy::Leaf({2})};
  const Node* first = operands[0].node.get();
  const auto node = Node::Create(&signature, operands, {});
  EXPECT_FALSE(operands[0]);
  EXPECT_FALSE(operands[1]);
  EXPECT_EQ(node->operands()[0].node.get(), first);
  EXPECT_EQ(first->refs(), 1u);
}

TEST(Node, KeepsItsScalarsBesideItsOperands) {
  const Value y = toy::Call("plus", {toy::Leaf({1})}, {7, 8, 9});
  const auto scalars = y.node->scalars();
  EXPECT_EQ(std::vector(scalars.begin(), scalars.end()), (std::vector<uint64_t>{7, 8, 9}));
  EXPECT_EQ(toy::DataOf(y.node->operands()[0]), toy::Data{1});
}

TEST(Node, DroppingOperandsLetsGoOfThem) {
  const Value x = toy::Leaf({1});
  const Value y = toy::Call("add", {x, x});
  EXPECT_EQ(x.node->refs(), 3u);
  y.node->DropOperands();
  EXPECT_EQ(x.node->refs(), 1u);
  EXPECT_EQ(y.node->operands().size(), 2u);
  EXPECT_FALSE(y.node->operands()[0]);
}

TEST(Node, AChainOfAMillionNodesIsDestroyedWithoutRecursion) {
  bool is_gone = false;
  const Signature signature("relu", {}, {toy::Vector(1)});
  Value last{Node::Leaf(toy::Vector(1), Watched(&is_gone)), 0};
  for (int i = 0; i < 1'000'000; ++i) {
    std::array<Value, 1> operands{std::move(last)};
    last = {Node::Create(&signature, operands, {}), 0};
  }
  last = {};
  EXPECT_TRUE(is_gone);
}

TEST(Node, NodesMayDieOnAnyThread) {
  const Value x = toy::Leaf({5});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&x] {
      for (int round = 0; round < 1000; ++round) {
        Value y = x;
        for (int k = 0; k < 100; ++k) y = toy::Call("add", {y, x});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(x.node->refs(), 1u);
}

}  // namespace
}  // namespace torch_xla_lite::ir
