// Threads that record, sync and fail at once.

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "test/csrc/ir/toy_ops.h"
#include "test/csrc/runtime/runtime_test_base.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"

namespace torch_xla_lite::runtime {
namespace {

using ir::Value;
using ir::toy::Call;
using ir::toy::Data;
using ir::toy::Leaf;

TEST_F(RuntimeTest, WhatAnotherThreadsValueIsComputedFromIsComputedOnce) {
  LiveValue of_this, of_other;
  Set(of_this, Call("plus", {Leaf({1})}, {1}));
  std::thread([&] {
    Set(of_other, Call("plus", {Get(of_this)}, {1}));
    EXPECT_EQ(Read(of_other), Data{3});
  }).join();
  EXPECT_FALSE(IsPending(of_this));
  EXPECT_EQ(Read(of_this), Data{2});
  EXPECT_EQ(executions(), 1u);
}

TEST_F(RuntimeTest, WhatAThreadLeftBehindBelongsToAll) {
  LiveValue a, b;
  std::thread([&] {
    Set(a, Call("plus", {Leaf({1})}, {1}));
    Set(b, Call("plus", {Leaf({2})}, {1}));
  }).join();
  EXPECT_EQ(Read(a), Data{2});
  EXPECT_FALSE(IsPending(b));
}

TEST_F(RuntimeTest, SynchronizeRunsWhatAllThreadsRecorded) {
  LiveValue of_this;
  Set(of_this, Call("plus", {Leaf({1})}, {1}));
  std::thread([&] {
    runtime.Synchronize();
    EXPECT_FALSE(IsPending(of_this));
  }).join();
}

// Each thread counts up in a place of its own, and reads those of the others; syncs interleave as
// they like.
TEST_F(RuntimeTest, ThreadsMayRecordAndSyncAtOnce) {
  constexpr size_t kThreads = 4;
  constexpr uint64_t kRounds = 300;
  const Value shared = Leaf({1});
  std::vector<LiveValue> places(kThreads);
  for (LiveValue& place : places) Set(place, Leaf({0}));
  std::vector<std::string> errors(kThreads);
  const auto count_up = [&](size_t me) {
    for (uint64_t i = 1; i <= kRounds; ++i) {
      {
        const RecordScope scope;
        places[me].Set(Call("add", {places[me].value(), shared}));
      }
      if (i % 3 == me % 3) runtime.Sync();
      if (i % 5 == 0 && Read(places[me]) != Data{i}) throw std::logic_error("lost a step");
      if (Read(places[(me + 1) % kThreads])[0] > kRounds) throw std::logic_error("a step too much");
    }
  };
  std::vector<std::thread> threads;
  for (size_t me = 0; me < kThreads; ++me) {
    threads.emplace_back([&, me] {
      try {
        count_up(me);
      } catch (const std::exception& error) {
        errors[me] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(errors, std::vector<std::string>(kThreads));
  for (const LiveValue& place : places) EXPECT_EQ(Read(place), Data{kRounds});
}

TEST_F(RuntimeTest, AFailureOnOneThreadIsNotSeenOnAnother) {
  std::string error_of_other;
  std::thread other([&] {
    try {
      for (uint64_t i = 0; i < 200; ++i) {
        LiveValue good;
        Set(good, Call("plus", {Leaf({i})}, {1}));
        if (Read(good) != Data{i + 1}) throw std::logic_error("a wrong result");
        Set(good, {});
      }
    } catch (const std::exception& error) {
      error_of_other = error.what();
    }
  });
  for (int i = 0; i < 200; ++i) {
    LiveValue failing;
    Set(failing, Call("fail", {Leaf({1})}));
    EXPECT_THROW(Read(failing), std::runtime_error);
    Set(failing, {});
  }
  other.join();
  EXPECT_EQ(error_of_other, "");
}

}  // namespace
}  // namespace torch_xla_lite::runtime
