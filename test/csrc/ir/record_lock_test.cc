#include "torch_xla_lite/csrc/ir/record_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace torch_xla_lite::ir {
namespace {

TEST(RecordLock, OneThreadAtATimeHoldsIt) {
  RecordLock lock;
  int64_t count = 0;  // Not atomic: only the lock protects it.
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 50'000; ++k) {
        const std::lock_guard guard(lock);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 200'000);
}

TEST(RecordLock, AThreadThatSleepsIsWokenWhenTheLockIsFree) {
  RecordLock lock;
  std::unique_lock held(lock);
  std::atomic<bool> has_it = false;
  std::thread other([&] {
    const std::lock_guard guard(lock);
    has_it = true;
  });
  EXPECT_FALSE(has_it);
  held.unlock();
  other.join();
  EXPECT_TRUE(has_it);
}

}  // namespace
}  // namespace torch_xla_lite::ir
