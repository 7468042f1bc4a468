#include "torch_xla_lite/csrc/ir/ref.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

namespace torch_xla_lite::ir {
namespace {

// Counts the destroyed objects.
struct Counted : RefCounted {
  explicit Counted(int* destroyed) : destroyed(destroyed) {}
  ~Counted() { ++*destroyed; }
  int* destroyed;
};

TEST(Ref, AssigningDropsWhatWasThere) {
  int destroyed = 0;
  auto ref = Ref<Counted>::Take(new Counted(&destroyed));
  ref = Ref<Counted>::Take(new Counted(&destroyed));
  EXPECT_EQ(destroyed, 1);
  ref = {};
  EXPECT_EQ(destroyed, 2);
}

TEST(Ref, AssigningToItselfKeepsTheObject) {
  int destroyed = 0;
  auto ref = Ref<Counted>::Take(new Counted(&destroyed));
  const auto& same = ref;
  ref = same;
  EXPECT_EQ(destroyed, 0);
  EXPECT_EQ(ref->refs(), 1u);
}

TEST(Ref, ReferencesMayBeDroppedOnAnyThread) {
  int destroyed = 0;
  auto owner = Ref<Counted>::Take(new Counted(&destroyed));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([ref = owner] {
      for (int k = 0; k < 10000; ++k) const Ref<Counted> copy = ref;
    });
  }
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  EXPECT_EQ(owner->refs(), 1u);
  owner = {};
  EXPECT_EQ(destroyed, 1);
}

}  // namespace
}  // namespace torch_xla_lite::ir
