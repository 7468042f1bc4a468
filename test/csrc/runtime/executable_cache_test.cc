#include "torch_xla_lite/csrc/runtime/executable_cache.h"

#include <gtest/gtest.h>

#include <vector>

namespace torch_xla_lite::runtime {
namespace {

using Key = std::vector<uint64_t>;

ir::Ref<Executable> New() { return ir::Ref<Executable>::Take(new Executable); }

TEST(ExecutableCache, FindsWhatWasInserted) {
  ExecutableCache cache(2);
  const auto executable = New();
  cache.Insert({1, 2}, executable);
  EXPECT_EQ(cache.Find(Key{1, 2}), executable);
}

TEST(ExecutableCache, KeysAreComparedWordForWord) {
  ExecutableCache cache(2);
  cache.Insert({1, 2}, New());
  EXPECT_FALSE(cache.Find(Key{}));
  EXPECT_FALSE(cache.Find(Key{1}));
  EXPECT_FALSE(cache.Find(Key{2, 1}));
  EXPECT_FALSE(cache.Find(Key{1, 2, 0}));
}

TEST(ExecutableCache, TheOldestIsDroppedFirst) {
  ExecutableCache cache(2);
  cache.Insert({1}, New());
  cache.Insert({2}, New());
  cache.Insert({3}, New());
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_FALSE(cache.Find(Key{1}));
  EXPECT_TRUE(cache.Find(Key{2}));
  EXPECT_TRUE(cache.Find(Key{3}));
}

TEST(ExecutableCache, WhatIsUsedIsNotTheOldest) {
  ExecutableCache cache(2);
  cache.Insert({1}, New());
  cache.Insert({2}, New());
  cache.Find(Key{1});
  cache.Insert({3}, New());
  EXPECT_TRUE(cache.Find(Key{1}));
  EXPECT_FALSE(cache.Find(Key{2}));
}

TEST(ExecutableCache, AnExecutableInUseSurvivesBeingDropped) {
  ExecutableCache cache(1);
  cache.Insert({1}, New());
  const auto in_use = cache.Find(Key{1});
  EXPECT_EQ(in_use->refs(), 2u);
  cache.Insert({2}, New());
  EXPECT_EQ(in_use->refs(), 1u);
}

TEST(ExecutableCache, AThousandExecutablesAreNotMixedUp) {
  ExecutableCache cache(1000);
  std::vector<ir::Ref<Executable>> executables;
  for (uint64_t i = 0; i < 1000; ++i) {
    executables.push_back(New());
    cache.Insert({i / 10, i % 10}, executables.back());
  }
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(cache.Find(Key{i / 10, i % 10}), executables[i]);
}

TEST(ExecutableCache, ClearingDropsAll) {
  ExecutableCache cache(2);
  cache.Insert({1}, New());
  cache.Clear();
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_FALSE(cache.Find(Key{1}));
}

}  // namespace
}  // namespace torch_xla_lite::runtime
