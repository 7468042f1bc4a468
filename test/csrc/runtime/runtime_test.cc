#include "torch_xla_lite/csrc/runtime/runtime.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "test/csrc/ir/toy_ops.h"
#include "test/csrc/runtime/runtime_test_base.h"

namespace torch_xla_lite::runtime {
namespace {

using ir::Value;
using ir::toy::Call;
using ir::toy::Data;
using ir::toy::Leaf;
using ir::toy::Result;

TEST_F(RuntimeTest, AValueThatNobodyLivesWithCanBeReadToo) {
  const Value value = Call("plus", {Leaf({1})}, {10});
  const auto buffer = runtime.Materialize(value);
  EXPECT_EQ(buffer.get(), value.buffer());
}

TEST_F(RuntimeTest, AThreadThatRefusesReadsRunsNothing) {
  LiveValue place;
  Set(place, Call("plus", {Leaf({1})}, {1}));
  runtime.RefuseReads(true);
  runtime.StartPending();
  EXPECT_THROW(runtime.Sync(), RefusedRead);
  EXPECT_THROW(Read(place), RefusedRead);
  EXPECT_TRUE(IsPending(place));
  EXPECT_TRUE(runtime.RefuseReads(false));
  EXPECT_EQ(Read(place), Data{2});
  EXPECT_FALSE(runtime.RefuseReads(false));
}

TEST_F(RuntimeTest, WithNothingPendingNothingRuns) {
  LiveValue place;
  Set(place, Leaf({1}));
  runtime.Sync();
  EXPECT_EQ(executions(), 0u);
}

TEST_F(RuntimeTest, AGraphOnDiskIsLoadedWhenThatPays) {
  runtime.set_compile_when(CompileWhen::kRepeated);
  runtime.costs().Set({{CostModel::kOther, {{.call = 1}, {}, 5}}}, {.load = 2});
  executor.loads = true;
  for (int run = 0; run < 4; ++run) {
    LiveValue place;
    Set(place, Call("plus", {Leaf({1})}, {1}));
    EXPECT_EQ(Read(place), Data{2});
  }
  EXPECT_EQ(interpretations(), 2u);
  EXPECT_EQ(executions(), 2u);
}

TEST_F(RuntimeTest, AGraphThatCannotBeInterpretedIsCompiledAtOnce) {
  runtime.set_compile_when(CompileWhen::kRepeated);
  executor.interprets = false;
  LiveValue place;
  Set(place, Call("plus", {Leaf({1})}, {1}));
  EXPECT_EQ(Read(place), Data{2});
  EXPECT_EQ(interpretations(), 0u);
  EXPECT_EQ(compiles(), 1u);
}

TEST_F(RuntimeTest, WhatTheCompilerRefusesIsNotInterpretedInsteadWhenItComesBack) {
  runtime.set_compile_when(CompileWhen::kRepeated);
  for (int num_calls : {1, 2}) {
    for (int run = 0; run < 3; ++run) {
      LiveValue good, place;
      Set(good, Call("plus", {Leaf(Data(4, 1))}, {1}));
      Set(place, Leaf(Data(4, 1)));
      for (int i = 0; i < num_calls; ++i) Set(place, Call("refuse", {Get(place)}));
      if (run == 0) {
        EXPECT_EQ(Read(place), Data(4, 1));
      } else {
        EXPECT_THROW(Read(place), std::runtime_error);
      }
      EXPECT_EQ(Read(good), Data(4, 2));
    }
  }
}

TEST_F(RuntimeTest, AnInterpretedGraphDonatesNothing) {
  runtime.set_compile_when(CompileWhen::kRepeated);
  LiveValue place;
  Set(place, Leaf(Data(4, 1)));
  for (int i = 0; i < 3; ++i) {
    Set(place, Call("plus", {Get(place)}, {1}));
    runtime.Sync();
    EXPECT_EQ(executor.num_donated, i);
  }
  EXPECT_EQ(Read(place), Data(4, 4));
}

TEST_F(RuntimeTest, WhatCannotBeInterpretedDoesNotWaitForTheBackground) {
  runtime.set_compile_when(CompileWhen::kBackground);
  runtime.costs().Set({{"plus", {{.call = std::numeric_limits<double>::infinity()}}}}, {});
  LiveValue place;
  Set(place, Call("plus", {Leaf({1})}, {1}));
  EXPECT_EQ(Read(place), Data{2});
  EXPECT_EQ(executor.num_started, 0);
  EXPECT_EQ(interpretations(), 0u);
  EXPECT_EQ(executions(), 1u);
}

TEST_F(RuntimeTest, AnotherGraphFindsWhatTheBackgroundHasCompiled) {
  runtime.set_compile_when(CompileWhen::kBackground);
  const auto run = [&](bool keeps_old) {
    LiveValue place, old;
    Set(place, Leaf({1}));
    if (keeps_old) Set(old, Get(place));
    Set(place, Call("plus", {Get(place)}, {1}));
    EXPECT_EQ(Read(place), Data{2});
  };
  run(/*keeps_old=*/false);
  run(/*keeps_old=*/false);
  executor.is_background_done = true;
  run(/*keeps_old=*/true);
  EXPECT_EQ(executor.num_donated, 0);
  EXPECT_EQ(executions(), 1u);
  EXPECT_EQ(executor.num_started, 1);
}

TEST_F(RuntimeTest, ALoopThatOverwritesItsValueDonatesItEachTime) {
  LiveValue place;
  Set(place, Leaf({0, 0}));
  for (int i = 0; i < 10; ++i) {
    Set(place, Call("plus", {Get(place)}, {3}));
    runtime.Sync();
  }
  EXPECT_EQ(Read(place), (Data{30, 30}));
  EXPECT_EQ(executor.num_donated, 10);
  EXPECT_EQ(compiles(), 1u);
}

TEST_F(RuntimeTest, ResultsOfOneNodeAreDonatedToo) {
  LiveValue a, b;
  Set(a, Leaf({3}));
  Set(b, Leaf({1}));
  for (int i = 0; i < 4; ++i) {
    const Value sum = Call("sum_difference", {Get(a), Get(b)});
    Set(a, sum);
    Set(b, Result(sum, 1));
  }
  runtime.Sync();
  for (int i = 0; i < 4; ++i) {
    {
      const Value sum = Call("sum_difference", {Get(a), Get(b)});
      Set(a, sum);
      Set(b, Result(sum, 1));
    }
    runtime.Sync();
  }
  EXPECT_EQ(executor.num_donated, 10);
  EXPECT_EQ(Read(a), Data{48});
  EXPECT_EQ(Read(b), Data{16});
}

TEST_F(RuntimeTest, ABufferThatSomeoneReadsIsNotDonated) {
  LiveValue place;
  Set(place, Leaf({1}));
  const auto buffer = runtime.Materialize(Get(place));
  Set(place, Call("plus", {Get(place)}, {1}));
  runtime.Sync();
  EXPECT_EQ(executor.num_donated, 0);
  EXPECT_EQ(static_cast<const ir::toy::HostBuffer&>(*buffer).data, Data{1});
}

TEST_F(RuntimeTest, WhatIsRecordedDuringASyncBelongsToTheNextOne) {
  LiveValue a, b;
  Set(a, Call("plus", {Leaf({1})}, {1}));
  executor.during_execution = [&] { Set(b, Call("plus", {Get(a)}, {1})); };
  runtime.Sync();
  executor.during_execution = nullptr;
  EXPECT_TRUE(IsPending(b));
  EXPECT_EQ(Read(b), Data{3});
  EXPECT_EQ(executions(), 2u);
}

TEST_F(RuntimeTest, APlaceThatIsOverwrittenDuringASyncKeepsTheNewValue) {
  LiveValue place;
  Set(place, Call("plus", {Leaf({1})}, {1}));
  executor.during_execution = [&] { Set(place, Call("plus", {Leaf({10})}, {1})); };
  runtime.Sync();
  executor.during_execution = nullptr;
  EXPECT_EQ(Read(place), Data{11});
}

TEST_F(RuntimeTest, ALoopOverMoreGraphsThanHavePlansKeepsMostPlans) {
  runtime.set_compile_when(CompileWhen::kRepeated);
  runtime.costs().Set({{CostModel::kOther, {{.call = 1}, {}, 1e9}}}, {});
  const auto run = [&](size_t first, size_t last) {
    for (size_t size = first; size < last; ++size) {
      LiveValue place;
      Set(place, Call("plus", {Leaf(Data(size, 1))}, {1}));
      runtime.Sync();
    }
  };
  for (int round = 0; round < 3; ++round) run(1, 1100);
  EXPECT_EQ(executor.num_plans, 1024);
  // What is not used any more makes place.
  for (int round = 0; round < 3; ++round) run(2000, 2010);
  EXPECT_EQ(executor.num_plans, 1024 + 10);
}

TEST_F(RuntimeTest, AStateThatBeginsWithZerosHasOneGraph) {
  const Value parameter = Leaf({7, 8});
  LiveValue state;
  Set(state, Call("zeros", {parameter}));
  for (int i = 0; i < 3; ++i) {
    Set(state, Call("add", {Get(state), parameter}));
    runtime.Sync();
  }
  EXPECT_EQ(compiles(), 1u);
  EXPECT_EQ(executor.num_donated, 3);
  EXPECT_EQ(Read(state), (Data{21, 24}));
}

TEST_F(RuntimeTest, StatesMayBeginWithTheSameZeros) {
  const Value parameter = Leaf({7, 8});
  LiveValue state, other;
  Set(state, Call("zeros", {parameter}));
  Set(other, Get(state));
  Set(state, Call("add", {Get(state), parameter}));
  EXPECT_EQ(Read(state), (Data{7, 8}));
  EXPECT_EQ(Read(other), (Data{0, 0}));
}

TEST_F(RuntimeTest, ZerosOfATemporaryStayInTheGraph) {
  LiveValue sum;
  Set(sum, Call("add", {Call("zeros", {Leaf({7})}), Leaf({1})}));
  EXPECT_EQ(Read(sum), Data{1});
  EXPECT_EQ(executions(), 1u);
}

}  // namespace
}  // namespace torch_xla_lite::runtime
