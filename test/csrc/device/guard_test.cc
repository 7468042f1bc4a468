#include "torch_xla_lite/csrc/device/guard.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

namespace torch_xla_lite::device {
namespace {

constexpr c10::DeviceType kJax = c10::DeviceType::PrivateUse1;

TEST(JaxGuard, ThereIsOneDevice) {
  c10::impl::VirtualGuardImpl guard(kJax);
  EXPECT_EQ(guard.deviceCount(), 1);
  EXPECT_EQ(guard.getDevice(), c10::Device(kJax, 0));
}

TEST(JaxGuard, ADeviceGuardLeavesTheDeviceAsItWas) {
  c10::DeviceGuard guard(c10::Device(kJax, 0));
  EXPECT_EQ(guard.current_device(), c10::Device(kJax, 0));
  EXPECT_EQ(guard.original_device(), c10::Device(kJax, 0));
}

TEST(JaxGuard, AnotherDeviceIsRefused) {
  c10::impl::VirtualGuardImpl guard(kJax);
  EXPECT_THROW(guard.setDevice(c10::Device(kJax, 1)), c10::Error);
}

TEST(JaxGuard, TheCurrentStreamIsTheDefaultOne) {
  c10::impl::VirtualGuardImpl guard(kJax);
  c10::Device device(kJax, 0);
  EXPECT_EQ(guard.getStream(device), guard.getDefaultStream(device));
}

TEST(JaxGuard, SynchronizingRunsTheWork) {
  int runs = 0;
  SetSynchronize([&runs] { ++runs; });
  c10::impl::VirtualGuardImpl(kJax).synchronizeDevice(0);
  SetSynchronize(nullptr);
  EXPECT_EQ(runs, 1);
}

TEST(JaxGuard, OffersTheTypesThatXlaHas) {
  auto types = c10::impl::getDeviceGuardImpl(kJax)
                   ->getDeviceCapability(c10::Device(kJax, 0))
                   .capability_data.supported_scalar_types;
  EXPECT_TRUE(types.has_BFloat16);
  EXPECT_FALSE(types.has_QInt8);
  EXPECT_FALSE(types.has_ComplexHalf);
}

}  // namespace
}  // namespace torch_xla_lite::device
