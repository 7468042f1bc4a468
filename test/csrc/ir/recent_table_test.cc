#include "torch_xla_lite/csrc/ir/recent_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace torch_xla_lite::ir {
namespace {

struct Number : RefCounted {
  explicit Number(uint64_t value) : value(value) {}
  const uint64_t value;
};

// Half of the numbers have a hash of their own.
uint64_t HashOf(uint64_t value) { return value / 2 * 2; }

const Number* Find(RecentTable<Number>& table, uint64_t value) {
  return table.Find(HashOf(value), [&](const Number& other) { return other.value == value; });
}

Ref<Number> Insert(RecentTable<Number>& table, uint64_t value) {
  return Ref<Number>::Share(table.Insert(HashOf(value), MakeRef<Number>(value)));
}

TEST(RecentTable, FindsWhatWasInserted) {
  RecentTable<Number> table(8);
  EXPECT_EQ(Find(table, 4), nullptr);
  const Ref<Number> four = Insert(table, 4);
  EXPECT_EQ(Find(table, 4), four.get());
  EXPECT_EQ(Find(table, 5), nullptr);
}

TEST(RecentTable, IsNeverLargerThanItsLimit) {
  RecentTable<Number> table(100);
  for (uint64_t i = 0; i < 10'000; ++i) {
    Insert(table, i);
    ASSERT_LE(table.size(), 100u);
    ASSERT_NE(Find(table, i), nullptr);
  }
}

TEST(RecentTable, WhatIsReferredToStays) {
  RecentTable<Number> table(8);
  std::vector<Ref<Number>> kept;
  for (uint64_t i = 0; i < 1000; ++i) kept.push_back(Insert(table, i));
  for (uint64_t i = 1000; i < 5000; ++i) Insert(table, i);
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(Find(table, i), kept[i].get());
  EXPECT_LE(table.size(), 2000u);
  kept.clear();
  for (uint64_t i = 5000; i < 7000; ++i) Insert(table, i);
  EXPECT_LE(table.size(), 8u);
}

TEST(RecentTable, WhatIsLookedUpStaysBeforeWhatIsNot) {
  RecentTable<Number> table(100);
  for (uint64_t i = 0; i < 20; ++i) Insert(table, i);
  for (uint64_t i = 20; i < 10'000; ++i) {
    Insert(table, i);
    for (uint64_t k = 0; k < 20; ++k) ASSERT_NE(Find(table, k), nullptr) << i;
  }
}

TEST(RecentTable, WhatIsNotLookedUpIsForgottenWhereverItIs) {
  RecentTable<Number> table(128);
  constexpr uint64_t kLastSlot = 254;
  Insert(table, kLastSlot);
  // These have the first slots.
  for (uint64_t i = 0; i < 1000; ++i) Insert(table, 256 * i);
  EXPECT_EQ(Find(table, kLastSlot), nullptr);
}

TEST(RecentTable, ClearingDropsAll) {
  RecentTable<Number> table(8);
  const Ref<Number> one = Insert(table, 1);
  table.Clear();
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(Find(table, 1), nullptr);
  EXPECT_EQ(one->refs(), 1u);
}

}  // namespace
}  // namespace torch_xla_lite::ir
