#include "torch_xla_lite/csrc/ffi/threads.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace torch_xla_lite::ffi {
namespace {

TEST(SerialBelow, KeepsSmallWorkOnOneThreadAndPutsTheSettingBack) {
  at::set_num_threads(3);
  {
    SerialBelow serial(kSerialBytes - 1);
    EXPECT_EQ(at::get_num_threads(), 1);
  }
  EXPECT_EQ(at::get_num_threads(), 3);
}

TEST(SerialBelow, LeavesLargeWorkAlone) {
  at::set_num_threads(3);
  SerialBelow serial(kSerialBytes);
  EXPECT_EQ(at::get_num_threads(), 3);
}

}  // namespace
}  // namespace torch_xla_lite::ffi
