#include "torch_xla_lite/csrc/runtime/live_values.h"

#include <gtest/gtest.h>

#include <vector>

#include "test/csrc/ir/toy_ops.h"

namespace torch_xla_lite::runtime {
namespace {

using Places = std::vector<LiveValue*>;

ir::Value Pending() { return ir::toy::Call("plus", {ir::toy::Leaf({1})}, {1}); }

TEST(LiveValue, NothingIsNotListed) {
  LiveValue place;
  place.Set(Pending());
  place.Set({});
  EXPECT_EQ(PendingValues(), Places{});
}

TEST(LiveValue, TheListIsInTheOrderOfTheLastWrites) {
  LiveValue a, b, c;
  a.Set(Pending());
  b.Set(Pending());
  c.Set(Pending());
  EXPECT_EQ(PendingValues(), (Places{&a, &b, &c}));
  a.Set(Pending());
  EXPECT_EQ(PendingValues(), (Places{&b, &c, &a}));
}

TEST(LiveValue, BothEndsOfTheListCanLeaveIt) {
  LiveValue a, b, c;
  a.Set(Pending());
  b.Set(Pending());
  c.Set(Pending());
  a.Unlink();
  EXPECT_EQ(PendingValues(), (Places{&b, &c}));
  c.Unlink();
  EXPECT_EQ(PendingValues(), Places{&b});
  a.Set(Pending());
  EXPECT_EQ(PendingValues(), (Places{&b, &a}));
}

TEST(LiveValue, LeavingTwiceIsHarmless) {
  LiveValue a, b;
  a.Set(Pending());
  b.Set(Pending());
  a.Unlink();
  a.Unlink();
  EXPECT_EQ(PendingValues(), Places{&b});
}

}  // namespace
}  // namespace torch_xla_lite::runtime
