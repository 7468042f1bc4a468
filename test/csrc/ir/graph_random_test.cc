// Runs random programs with syncs at random points, and compares every value with eager evaluation.
//
// TORCH_XLA_LITE_TEST_SEED runs the program of one seed again:
//   bazel test --test_env=TORCH_XLA_LITE_TEST_SEED=7 //test/csrc/ir:graph_random_test

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "test/csrc/ir/toy_ops.h"
#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/key.h"
#include "torch_xla_lite/csrc/ir/node.h"

namespace torch_xla_lite::ir {
namespace {

using toy::Data;
using toy::HostBuffer;

// A value that the program holds, and its expected data.
struct Held {
  Value value;
  Data expected;
};

class Program {
 public:
  explicit Program(uint64_t seed) : random_(seed) {}

  void Run(int num_steps) {
    for (int i = 0; i < 3; ++i) HoldLeaf();
    for (int i = 0; i < num_steps && !testing::Test::HasFatalFailure(); ++i) {
      const size_t choice = Below(20);
      if (choice == 0) {
        HoldLeaf();
      } else if (choice < 13) {
        HoldCall();
      } else if (choice < 17) {
        Drop();
      } else if (choice < 19) {
        Sync(/*skipped_percent=*/0);
      } else {
        Sync(/*skipped_percent=*/50);
      }
    }
    Sync(0);
    for (const Held& held : held_) ASSERT_EQ(toy::DataOf(held.value), held.expected);
  }

 private:
  size_t Below(size_t bound) {
    return std::uniform_int_distribution<size_t>(0, bound - 1)(random_);
  }
  // The newest values are the most likely, as in real programs: graphs become deep.
  const Held& AnyHeld() {
    return held_[held_.size() - 1 - std::min(Below(held_.size()), Below(held_.size()))];
  }

  void HoldLeaf() {
    Data data(Below(4) == 0 ? 4 : 2);
    for (uint64_t& element : data) element = random_();
    Value leaf = toy::Leaf(data);
    static_cast<HostBuffer*>(leaf.buffer())->is_exclusive = Below(3) != 0;
    held_.push_back({std::move(leaf), std::move(data)});
  }

  void HoldCall() {
    static constexpr const char* kOps[] = {"add",  "multiply", "sum_difference",
                                           "plus", "reversed", "halves"};
    const std::string op = kOps[Below(std::size(kOps))];
    const Held first = AnyHeld();
    const Held second = AnyHeld();
    if (op == "halves" && first.expected.size() < 4) return;
    std::vector<Value> operands{first.value};
    std::vector<Data> data{first.expected};
    if (op == "add" || op == "multiply" || op == "sum_difference") {
      if (first.expected.size() != second.expected.size()) return;
      operands.push_back(second.value);
      data.push_back(second.expected);
    }
    std::vector<uint64_t> scalars;
    if (op == "plus") scalars.push_back(random_());
    auto expected = toy::Compute(op, data, scalars);
    const Value call = toy::Call(op, std::move(operands), scalars);
    // Some results are never read.
    const size_t dropped = Below(4);
    for (uint32_t i = 0; i < expected.size(); ++i) {
      if (expected.size() == 1 || i != dropped) {
        held_.push_back({toy::Result(call, i), std::move(expected[i])});
      }
    }
  }

  void Drop() {
    if (held_.size() < 4) return;
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(Below(held_.size())));
  }

  // Computes all pending values, or some of them.
  void Sync(size_t skipped_percent) {
    std::vector<Root> roots;
    for (const Held& held : held_) {
      if (held.value.buffer() == nullptr && Below(100) >= skipped_percent) {
        roots.push_back({&held.value});
      }
    }
    const Graph graph = Linearize(roots);
    const Description description = Describe(graph.key);
    auto data = toy::Interpret(description, toy::DataOf(graph.leaves), graph.scalars);
    EraseDonated(graph, description);
    std::vector<Ref<Buffer>> results;
    for (Data& result : data) {
      results.push_back(Ref<Buffer>::Take(new HostBuffer(std::move(result))));
    }
    Commit(graph, std::move(results));
    for (const Root& root : roots) ASSERT_NE(root.value->buffer(), nullptr);
    for (const Held& held : held_) {
      if (held.value.buffer() == nullptr) continue;
      ASSERT_EQ(toy::DataOf(held.value), held.expected);
    }
  }

  // Overwrites donated memory, as a device may do. Reading it again fails.
  static void EraseDonated(const Graph& graph, const Description& description) {
    size_t leaf = 0;
    for (const Step& step : description.steps) {
      if (step.signature != nullptr) continue;
      auto* buffer = static_cast<HostBuffer*>(graph.leaves[leaf++].buffer());
      if (!step.donated) continue;
      ASSERT_TRUE(buffer->is_exclusive);
      buffer->data.clear();
      ++num_donated;
    }
  }

  std::mt19937_64 random_;
  std::vector<Held> held_;

 public:
  static inline int num_donated = 0;
};

TEST(Graph, RandomProgramsGiveWhatEagerEvaluationGives) {
  const char* seed = std::getenv("TORCH_XLA_LITE_TEST_SEED");
  // Bazel sets it with --runs_per_test: each run tries other programs.
  const char* run = std::getenv("TEST_RANDOM_SEED");
  const uint64_t first = seed != nullptr  ? std::stoull(seed)
                         : run != nullptr ? 1 + 400 * std::stoull(run)
                                          : 1;
  const uint64_t last = seed != nullptr ? first : first + 399;
  for (uint64_t i = first; i <= last && !HasFailure(); ++i) {
    SCOPED_TRACE("TORCH_XLA_LITE_TEST_SEED=" + std::to_string(i));
    Program(i).Run(/*num_steps=*/200);
  }
  // Check that the programs do test donation.
  if (seed == nullptr) {
    EXPECT_GT(Program::num_donated, 100);
  }
}

}  // namespace
}  // namespace torch_xla_lite::ir
