#include "torch_xla_lite/csrc/ffi/threads.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <thread>

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

TEST(SerialBelow, HoldsForMklOnAThreadThatItHasNotSeen) {
  const auto threads = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "MKL_Get_Max_Threads"));
  if (threads == nullptr) GTEST_SKIP() << "torch was built without MKL.";
  at::set_num_threads(3);
  std::thread([&] {
    {
      SerialBelow serial(0);
      EXPECT_EQ(threads(), 1);
    }
    EXPECT_EQ(threads(), 3);
  }).join();
}

TEST(SerialBelow, LeavesLargeWorkAlone) {
  at::set_num_threads(3);
  SerialBelow serial(kSerialBytes);
  EXPECT_EQ(at::get_num_threads(), 3);
}

}  // namespace
}  // namespace torch_xla_lite::ffi
