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

}  // namespace
}  // namespace torch_xla_lite::runtime
