#include "torch_xla_lite/csrc/runtime/pieces.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "test/csrc/ir/toy_ops.h"
#include "test/csrc/runtime/runtime_test_base.h"

namespace torch_xla_lite::runtime {
namespace {

using ir::Value;
using ir::toy::Call;
using ir::toy::Data;
using ir::toy::Leaf;

class PiecesTest : public RuntimeTest {
 protected:
  PiecesTest() { SetCosts(100); }

  // Those of a call in a piece that stays.
  void SetCosts(double call) {
    runtime.costs().Set({{CostModel::kOther, {{.call = call}, {}, 1}}}, {.load = 1e9});
  }

  // Like a model that writes a text: reads its end, computes, appends what it has computed.
  void Append(LiveValue& text, size_t size) {
    const Value token = Call("element", {Get(text)}, {size - 1});
    Value result = token;
    for (int i = 0; i < 4; ++i) result = Call("plus", {Call("add", {result, token})}, {1});
    Set(text, Call("append", {Get(text), result}));
  }
};

TEST_F(PiecesTest, WhatStaysIsCompiledOnce) {
  LiveValue text;
  Set(text, Leaf({1}));
  Data expected{1};
  for (size_t size = 1; size < 40; ++size) {
    Append(text, size);
    runtime.Sync();
    uint64_t next = expected.back();
    for (int i = 0; i < 4; ++i) next += expected.back() + 1;
    expected.push_back(next);
    ASSERT_EQ(Read(text), expected);
  }
  // The first three graphs are compiled whole; then what stays, once, and two pieces each time.
  EXPECT_EQ(compiles(), 3u + 1u + 2u * 36u);
  EXPECT_EQ(cache_hits(), 35u);
  // In a second text too, though its graphs are not new any more.
  Set(text, Leaf({1}));
  for (size_t size = 1; size < 40; ++size) {
    Append(text, size);
    runtime.Sync();
  }
  EXPECT_EQ(Read(text), expected);
  EXPECT_EQ(compiles(), 3u + 1u + 2u * 36u);
}

TEST_F(PiecesTest, WhatIsKeptOfALeafIsNoLeafOfLaterGraphs) {
  // Such as a view that the program keeps: no root.
  const Value end = Call("plus", {Leaf({1})}, {2});
  LiveValue text;
  Set(text, Leaf({1}));
  for (size_t size = 1; size < 40; size += 2) {
    Append(text, size);
    Set(text, Call("append", {Get(text), end}));
    runtime.Sync();
    ASSERT_EQ(Read(text).back(), 3u);
  }
  EXPECT_EQ(executions(), 3u + 3u * 17u);
}

TEST_F(PiecesTest, WhatCostsLittleIsNotDivided) {
  SetCosts(1);
  LiveValue text;
  Set(text, Leaf({1, 2, 3}));
  for (size_t size = 3; size < 20; ++size) {
    Append(text, size);
    runtime.Sync();
  }
  EXPECT_EQ(executions(), 17u);
}

TEST_F(PiecesTest, ASmallPartOfAGraphIsNotDivided) {
  LiveValue text;
  Set(text, Leaf({1, 2, 3}));
  for (size_t size = 3; size < 20; ++size) {
    Append(text, size);
    for (int i = 0; i < 40; ++i) Set(text, Call("plus", {Get(text)}, {1}));
    runtime.Sync();
  }
  EXPECT_EQ(executions(), 17u);
}

TEST_F(PiecesTest, GraphsThatComeBackAreNotDivided) {
  LiveValue place;
  for (int round = 0; round < 20; ++round) {
    const size_t size = 50 + round % 2;
    Value value = Leaf(Data(size, 1));
    const Value other = Leaf(Data(7, 1));
    Value stays = other;
    for (int i = 0; i < 4; ++i) stays = Call("multiply", {stays, other});
    Set(place, Call("append", {Call("plus", {value}, {1}), stays}));
    runtime.Sync();
  }
  EXPECT_EQ(compiles(), 2u);
  EXPECT_EQ(executions(), 20u);
}

TEST_F(PiecesTest, AFailureInOnePieceIsThatOfItsValue) {
  LiveValue text, other;
  Set(text, Leaf({1, 1}));
  for (size_t size = 2; size < 12; ++size) {
    Append(text, size);
    if (size == 11) {
      Set(other, Call("fail", {Get(text)}));
      EXPECT_THROW(runtime.Sync(), std::runtime_error);
    }
    runtime.Sync();
  }
  EXPECT_EQ(Read(text).size(), 12u);
  EXPECT_THROW(Read(other), std::runtime_error);
}

// A loop whose body is made by chance: the same calls in each round, some of them on what grows.
class Loop {
 public:
  Loop(uint64_t seed, size_t num_calls) : random_(seed) {
    // Two that grow, and two that stay.
    for (const bool grows : {true, true, false, false}) values_.push_back({"", {}, grows, 2});
    while (values_.size() < num_calls) AddCall();
    for (size_t i = 0; i < 3; ++i) kept_.push_back(4 + Below(values_.size() - 4));
  }

  // The values that the loop keeps, by running its body on data that begins as `first` says.
  template <typename Make, typename Apply>
  auto Run(size_t round, Make&& make, Apply&& apply) {
    std::vector<decltype(make(Data()))> values;
    for (const Template& value : values_) {
      if (value.op.empty()) {
        values.push_back(make(Data(value.grows ? value.extra + round : value.extra, 3)));
        continue;
      }
      std::vector<decltype(make(Data()))> operands;
      for (const size_t operand : value.operands) operands.push_back(values[operand]);
      values.push_back(apply(value.op, std::move(operands)));
    }
    std::vector<decltype(make(Data()))> kept;
    for (const size_t i : kept_) kept.push_back(values[i]);
    return kept;
  }

 private:
  struct Template {
    std::string op;
    std::vector<size_t> operands;
    bool grows;
    size_t extra;  // Elements, in the first round.
  };

  size_t Below(size_t bound) {
    return std::uniform_int_distribution<size_t>(0, bound - 1)(random_);
  }

  void AddCall() {
    const size_t a = Below(values_.size());
    const size_t b = Below(values_.size());
    const Template& of_a = values_[a];
    const Template& of_b = values_[b];
    const bool are_alike = of_a.grows == of_b.grows && of_a.extra == of_b.extra;
    switch (Below(4)) {
      case 0:
        return values_.push_back({"plus", {a}, of_a.grows, of_a.extra});
      case 1:
        if (are_alike) values_.push_back({"multiply", {a, b}, of_a.grows, of_a.extra});
        return;
      case 2:
        return values_.push_back({"element", {a}, false, 1});
      default:
        if (of_b.grows || of_a.extra + of_b.extra > 9) return;
        values_.push_back({"append", {a, b}, of_a.grows, of_a.extra + of_b.extra});
    }
  }

  std::mt19937_64 random_;
  std::vector<Template> values_;
  std::vector<size_t> kept_;
};

TEST_F(PiecesTest, ARandomLoopComputesWhatItComputesCallByCall) {
  uint64_t divided = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    runtime.ClearCache();
    Loop loop(seed, 12 + seed % 20);
    for (size_t round = 0; round < 6; ++round) {
      std::deque<LiveValue> places(3);
      const uint64_t before = executions();
      const auto values = loop.Run(round, Leaf, [](const std::string& op, auto operands) {
        return Call(op, std::move(operands), {op == "plus" ? 5u : 0u});
      });
      for (size_t i = 0; i < values.size(); ++i) Set(places[i], values[i]);
      runtime.Sync();
      divided += executions() > before + 1;
      const auto expected = loop.Run(
          round, [](Data data) { return data; },
          [](const std::string& op, const std::vector<Data>& operands) {
            const uint64_t scalar = op == "plus" ? 5 : 0;
            return ir::toy::Compute(op, operands, {&scalar, 1})[0];
          });
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_FALSE(IsPending(places[i]));
        ASSERT_EQ(Read(places[i]), expected[i]);
      }
    }
  }
  EXPECT_GT(divided, 100u);
}

}  // namespace
}  // namespace torch_xla_lite::runtime
