#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <gtest/gtest.h>

#include "torch_xla_lite/csrc/device/generator.h"

namespace torch_xla_lite::device {
namespace {

const at::PrivateUse1HooksInterface& Hooks() { return at::detail::getPrivateUse1Hooks(); }

TEST(JaxHooks, AreRegisteredWhenTheLibraryIsLoaded) {
  EXPECT_TRUE(at::isPrivateUse1HooksRegistered());
  EXPECT_TRUE(Hooks().isAvailable());
}

TEST(JaxHooks, TheDefaultGeneratorIsTheOneOfTheRecorder) {
  EXPECT_EQ(Hooks().getDefaultGenerator(-1), DefaultGeneratorHandle());
  EXPECT_EQ(Hooks().getDefaultGenerator(0), DefaultGeneratorHandle());
}

TEST(JaxHooks, ANewGeneratorIsAnother) {
  EXPECT_NE(Hooks().getNewGenerator(-1), DefaultGeneratorHandle());
}

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
