// Values that cannot be compiled or computed.

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "test/csrc/ir/toy_ops.h"
#include "test/csrc/runtime/runtime_test_base.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"

namespace torch_xla_lite::runtime {
namespace {

using ir::toy::Call;
using ir::toy::Data;
using ir::toy::Leaf;

TEST_F(RuntimeTest, AFailingValueDoesNotSpoilTheOthers) {
  LiveValue before, failing, after;
  Set(before, Call("plus", {Leaf({1})}, {1}));
  Set(failing, Call("fail", {Leaf({1})}));
  Set(after, Call("plus", {Leaf({1, 2})}, {1}));
  EXPECT_EQ(Read(after), (Data{2, 3}));
  EXPECT_FALSE(IsPending(before));
  EXPECT_EQ(Read(before), Data{2});
}

TEST_F(RuntimeTest, AValueThatCannotBeCompiledDoesNotSpoilTheOthers) {
  LiveValue failing, good;
  Set(failing, Call("refuse", {Leaf({1})}));
  Set(good, Call("plus", {Leaf({1})}, {1}));
  EXPECT_EQ(Read(good), Data{2});
}

TEST_F(RuntimeTest, AFailedValueFailsWheneverItIsRead) {
  LiveValue place;
  Set(place, Call("fail", {Leaf({1})}));
  EXPECT_THROW(Read(place), std::runtime_error);
  EXPECT_THROW(Read(place), std::runtime_error);
}

TEST_F(RuntimeTest, WhatNeedsAFailedValueFailsToo) {
  LiveValue failing, dependent;
  Set(failing, Call("fail", {Leaf({1})}));
  Set(dependent, Call("plus", {Get(failing)}, {1}));
  EXPECT_THROW(Read(failing), std::runtime_error);
  EXPECT_THROW(Read(dependent), std::runtime_error);
}

TEST_F(RuntimeTest, ASyncThrowsTheFirstErrorYetComputesTheRest) {
  LiveValue refused, failing, good;
  Set(refused, Call("refuse", {Leaf({1})}));
  Set(failing, Call("fail", {Leaf({1})}));
  Set(good, Call("plus", {Leaf({1})}, {1}));
  try {
    runtime.Sync();
    FAIL() << "must throw";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "this op is refused");
  }
  EXPECT_FALSE(IsPending(good));
}

TEST_F(RuntimeTest, WhatDoesNotNeedAFailingOpIsOneGraph) {
  LiveValue failing, dependent, a, b;
  Set(failing, Call("fail", {Leaf({1})}));
  Set(dependent, Call("plus", {Get(failing)}, {1}));
  Set(a, Call("plus", {Leaf({1})}, {1}));
  Set(b, Call("plus", {Leaf({2})}, {1}));
  EXPECT_THROW(runtime.Sync(), std::runtime_error);
  EXPECT_EQ(executions(), 1u);
  EXPECT_EQ(Read(a), Data{2});
  EXPECT_EQ(Read(b), Data{3});
}

TEST_F(RuntimeTest, AnErrorThatNamesNoOpIsThrownAtOnceAndAllStaysAsItWas) {
  LiveValue a, b;
  Set(a, Leaf({1}));
  Set(a, Call("plus", {Get(a)}, {1}));
  Set(b, Call("plus", {Leaf({2})}, {1}));
  executor.during_execution = [] { throw std::bad_alloc(); };
  EXPECT_THROW(Read(b), std::bad_alloc);
  executor.during_execution = nullptr;
  EXPECT_EQ(executions(), 0u);
  EXPECT_EQ(Read(a), Data{2});
  EXPECT_EQ(Read(b), Data{3});
}

TEST_F(RuntimeTest, WhatIsTooLargeIsLeftAloneAfterAnErrorThatNamesNoOp) {
  LiveValue a, b, large, of_large;
  Set(a, Call("plus", {Leaf({1})}, {1}));
  Set(b, Call("plus", {Leaf({2})}, {1}));
  Set(large, Call("plus", {Leaf({1, 2, 3})}, {1}));
  executor.during_execution = [] { throw std::bad_alloc(); };
  EXPECT_THROW(Read(a), std::bad_alloc);
  executor.during_execution = nullptr;
  Set(of_large, Call("plus", {Get(large)}, {1}));
  EXPECT_EQ(Read(a), Data{2});
  EXPECT_FALSE(IsPending(b));
  runtime.Sync();
  EXPECT_TRUE(IsPending(large));
  EXPECT_TRUE(IsPending(of_large));
  EXPECT_EQ(executions(), 1u);
  EXPECT_EQ(Read(of_large), (Data{3, 4, 5}));
  EXPECT_FALSE(IsPending(large));
  Set(a, Call("plus", {Get(a)}, {1}));
  Set(large, Call("plus", {Get(large)}, {1}));
  runtime.Sync();
  EXPECT_EQ(executions(), 3u);
}

TEST_F(RuntimeTest, AllAreComputedAloneIfWhatIsLargestWasNotToBlame) {
  LiveValue a, b, large;
  Set(a, Call("plus", {Leaf({1})}, {1}));
  Set(b, Call("plus", {Leaf({1, 2})}, {1}));
  Set(large, Call("plus", {Leaf({1, 2, 3})}, {1}));
  executor.during_execution = [] { throw std::bad_alloc(); };
  EXPECT_THROW(Read(a), std::bad_alloc);
  EXPECT_THROW(Read(a), std::bad_alloc);
  executor.during_execution = nullptr;
  EXPECT_EQ(Read(a), Data{2});
  EXPECT_TRUE(IsPending(b));
  EXPECT_EQ(Read(large), (Data{2, 3, 4}));
  EXPECT_TRUE(IsPending(b));
}

TEST_F(RuntimeTest, ASyncInsideASyncThrowsAndDoesNotWaitForItself) {
  LiveValue a, b;
  Set(a, Call("plus", {Leaf({1})}, {1}));
  bool threw = false;
  executor.during_execution = [&] {
    Set(b, Call("plus", {Leaf({2})}, {1}));
    try {
      Read(b);
    } catch (const std::runtime_error&) {
      threw = true;
    }
  };
  runtime.Sync();
  executor.during_execution = nullptr;
  EXPECT_TRUE(threw);
  EXPECT_EQ(Read(b), Data{3});
}

TEST_F(RuntimeTest, AFailedValueDoesNotFailTheNextSync) {
  LiveValue failing, good;
  Set(failing, Call("fail", {Leaf({1})}));
  EXPECT_THROW(runtime.Sync(), std::runtime_error);
  Set(good, Call("plus", {Leaf({1})}, {1}));
  runtime.Sync();
  EXPECT_EQ(Read(good), Data{2});
}

TEST_F(RuntimeTest, APlaceRecoversWhenItIsWrittenAgain) {
  LiveValue place;
  Set(place, Call("fail", {Leaf({1})}));
  EXPECT_THROW(runtime.Sync(), std::runtime_error);
  Set(place, Call("plus", {Leaf({1})}, {1}));
  runtime.Sync();
  EXPECT_EQ(Read(place), Data{2});
}

TEST_F(RuntimeTest, AnOpThatFailsAtTheLimitIsReportedWhenItIsRead) {
  LiveValue failing, good;
  Set(failing, Call("fail", {Leaf({1})}));
  Set(good, Call("plus", {Leaf({1})}, {1}));
  runtime.StartPending();
  EXPECT_FALSE(IsPending(good));
  EXPECT_THROW(Read(failing), std::runtime_error);
}

}  // namespace
}  // namespace torch_xla_lite::runtime
