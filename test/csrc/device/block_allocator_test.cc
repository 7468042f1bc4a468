#include "torch_xla_lite/csrc/device/block_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

namespace torch_xla_lite::device {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

c10::DataPtr Block(size_t size) {
  const BlockScope blocks;
  return c10::GetCPUAllocator()->allocate(size);
}

struct BlockAllocator : testing::Test {
  // What other tests have used does not count.
  BlockAllocator() {
    for (int i = 0; i < 2; ++i) EndBlockPeriod();
    ReleaseKeptBlocks();
  }
};

TEST_F(BlockAllocator, LargeArraysOfTheScopeAreBlocks) {
  const c10::DataPtr large = Block(kMiB);
  EXPECT_EQ(CountBlockBytes().used, kMiB);
  std::memset(large.get(), 1, kMiB);
}

TEST_F(BlockAllocator, SmallArraysAreInTheHeap) {
  const c10::DataPtr small = Block(kSmallestBlock - 1);
  EXPECT_EQ(CountBlockBytes().used, 0u);
}

TEST_F(BlockAllocator, MemoryOfTheProgramIsInTheHeap) {
  { const BlockScope ended; }
  const c10::DataPtr large = c10::GetCPUAllocator()->allocate(kMiB);
  EXPECT_EQ(CountBlockBytes().used, 0u);
}

TEST_F(BlockAllocator, TheEndOfAnInnerScopeLeavesTheOuterOneActive) {
  const BlockScope outer;
  { const BlockScope inner; }
  const c10::DataPtr large = c10::GetCPUAllocator()->allocate(kMiB);
  EXPECT_EQ(CountBlockBytes().used, kMiB);
}

TEST_F(BlockAllocator, AFreedBlockServesTheNextArrayOfAboutItsSize) {
  c10::DataPtr first = Block(kMiB - 100);
  void* const address = first.get();
  first.clear();
  EXPECT_EQ(CountBlockBytes().kept, kMiB);
  for (const size_t size : {kMiB, kMiB * 7 / 10}) EXPECT_EQ(Block(size).get(), address);
  EXPECT_NE(Block(kMiB / 2).get(), address);
}

TEST_F(BlockAllocator, ABlockMayBeFreedOnAnotherThread) {
  c10::DataPtr block = Block(kMiB);
  std::thread([&] { block.clear(); }).join();
  EXPECT_EQ(CountBlockBytes().used, 0u);
}

TEST_F(BlockAllocator, LittleMoreIsMappedThanWasInUseAtOnce) {
  std::vector<c10::DataPtr> arrays;
  size_t used = 0;
  for (size_t size = 4 * kMiB; size < 64 * kMiB; size += 4 * kMiB) {
    arrays.clear();
    for (int i = 0; i < 16; ++i) {
      arrays.push_back(Block(size));
      const BlockBytes bytes = CountBlockBytes();
      used = std::max(used, bytes.used);
      EXPECT_LE(bytes.used + bytes.kept, used + used / 8 + 8 * kMiB) << size;
    }
  }
}

TEST_F(BlockAllocator, BlocksOfSeveralSizesAreThereInTheNextRound) {
  const auto first_byte = [](size_t size) -> char& {
    return *static_cast<char*>(Block(size * kMiB).get());
  };
  for (const size_t size : {5, 4, 3}) first_byte(size) = 1;
  for (const size_t size : {5, 4, 3}) EXPECT_EQ(first_byte(size), 1);
}

// Uses 64 blocks at once, which are kept.
void UseMany() {
  {
    std::vector<c10::DataPtr> many;
    for (int i = 0; i < 64; ++i) many.push_back(Block(kMiB));
  }
  EXPECT_EQ(CountBlockBytes().kept, 64 * kMiB);
}

TEST_F(BlockAllocator, WhatWasInUseLongAgoIsNotKept) {
  UseMany();
  for (int i = 0; i < 40'000; ++i) Block(kMiB);
  EXPECT_LE(CountBlockBytes().kept, 9 * kMiB);
}

TEST_F(BlockAllocator, WhatWasInUseTwoPeriodsAgoIsNotKept) {
  UseMany();
  EndBlockPeriod();
  EXPECT_EQ(CountBlockBytes().kept, 64 * kMiB);
  EndBlockPeriod();
  EXPECT_LE(CountBlockBytes().kept, 9 * kMiB);
}

TEST_F(BlockAllocator, RawMemoryIsFreedWhereItCameFrom) {
  c10::Allocator& allocator = *c10::GetCPUAllocator();
  void* const heap = allocator.raw_allocate(kMiB);
  const BlockScope blocks;
  void* const block = allocator.raw_allocate(kMiB);
  EXPECT_EQ(CountBlockBytes().used, kMiB);
  allocator.raw_deallocate(heap);
  allocator.raw_deallocate(block);
  EXPECT_EQ(CountBlockBytes().used, 0u);
}

}  // namespace
}  // namespace torch_xla_lite::device
