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

TEST_F(RuntimeTest, AnErrorThatNamesNoCallIsThrownByTheReadThatNeedsIt) {
  LiveValue a, b, large, of_large;
  Set(a, Leaf({1}));
  Set(a, Call("plus", {Get(a)}, {1}));
  Set(b, Call("plus", {Leaf({2})}, {1}));
  Set(large, Call("lack", {Leaf({1, 2, 3})}));
  Set(of_large, Call("plus", {Get(large)}, {1}));
  EXPECT_EQ(Read(a), Data{2});
  EXPECT_TRUE(IsPending(b));  // Each is computed alone.
  EXPECT_EQ(Read(b), Data{3});
  EXPECT_THROW(Read(of_large), std::bad_alloc);
  EXPECT_THROW(Read(large), std::bad_alloc);
  EXPECT_EQ(executions(), 2u);
}

TEST_F(RuntimeTest, ASyncThrowsAnErrorThatNamesNoCallOnce) {
  LiveValue large, good;
  Set(large, Call("lack", {Leaf({1})}));
  EXPECT_THROW(runtime.Sync(), std::bad_alloc);
  Set(good, Call("plus", {Leaf({1})}, {1}));
  runtime.Sync();
  EXPECT_FALSE(IsPending(good));
  EXPECT_TRUE(IsPending(large));
  Set(large, Call("plus", {Leaf({1})}, {1}));
  runtime.Sync();
  EXPECT_EQ(Read(large), Data{2});
}

TEST_F(RuntimeTest, CallsThatFailTogetherAreLeftOutTogether) {
  LiveValue first, good, second;
  Set(first, Call("refuse", {Leaf({1})}));
  Set(good, Call("plus", {Leaf({1})}, {1}));
  Set(second, Call("refuse", {Leaf({2})}));
  EXPECT_THROW(runtime.Sync(), std::runtime_error);
  EXPECT_EQ(compiles(), 1u);
  EXPECT_FALSE(IsPending(good));
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
