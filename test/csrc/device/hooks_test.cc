#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <gtest/gtest.h>

#include "torch_xla_lite/csrc/device/generator.h"

namespace torch_xla_lite::device {
namespace {

const at::PrivateUse1HooksInterface& Hooks() { return at::detail::getPrivateUse1Hooks(); }

TEST(JaxHooks, TheGeneratorOfAnotherDeviceIsRefused) {
  EXPECT_THROW(Hooks().getDefaultGenerator(1), c10::Error);
}

TEST(JaxHooks, AnAddressIsRefusedWithAWayOut) {
  int value = 0;
  try {
    Hooks().getDeviceFromPtr(&value);
    FAIL() << "must raise";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what_without_backtrace()).find("tensor.cpu()"), std::string::npos);
  }
}

}  // namespace
}  // namespace torch_xla_lite::device
