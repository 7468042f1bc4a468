#include "torch_xla_lite/csrc/device/guard.h"

#include <c10/core/DeviceCapability.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <chrono>
#include <utility>

namespace torch_xla_lite::device {
namespace {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

// Never destroyed: a thread of the autograd engine may wait for the device while the process exits.
std::function<void()>& Synchronize() {
  static auto* synchronize = new std::function<void()>();
  return *synchronize;
}

void RunSynchronize() {
  if (Synchronize()) Synchronize()();
}

class JaxGuardImpl final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }

  c10::Device exchangeDevice(c10::Device device) const override {
    CheckDeviceIndex(device.index());
    return Current();
  }
  c10::Device getDevice() const override { return Current(); }
  void setDevice(c10::Device device) const override { CheckDeviceIndex(device.index()); }
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return kDeviceCount; }

  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    c10::DeviceCapability capability;
    capability.capability_data.capability_bits = 0;
    auto& types = capability.capability_data.supported_scalar_types;
    types.has_Bool = true;
    types.has_Byte = types.has_UInt16 = types.has_UInt32 = types.has_UInt64 = true;
    types.has_Char = types.has_Short = types.has_Int = types.has_Long = true;
    types.has_Half = types.has_BFloat16 = types.has_Float = types.has_Double = true;
    types.has_ComplexFloat = types.has_ComplexDouble = true;
    types.has_Float8_e5m2 = types.has_Float8_e4m3fn = true;
    types.has_Float8_e5m2fnuz = types.has_Float8_e4m3fnuz = true;
    return capability;
  }

  c10::Stream getStream(c10::Device) const override { return DefaultStream(); }
  c10::Stream getDefaultStream(c10::Device) const override { return DefaultStream(); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return DefaultStream(); }
  c10::Stream getNewStream(c10::Device, int) const override { return DefaultStream(); }
  c10::Stream exchangeStream(c10::Stream) const override { return DefaultStream(); }
  bool queryStream(const c10::Stream&) const override { return RunsDry(); }
  void synchronizeStream(const c10::Stream&) const override { RunSynchronize(); }
  void synchronizeDevice(c10::DeviceIndex index) const override {
    CheckDeviceIndex(index);
    RunSynchronize();
  }

  // There is one stream, which runs in recording order, so events have nothing to order. An event
  // that measures time waits where it is recorded: XLA does not say when a computation ended.
  void record(void** event, const c10::Stream&, c10::DeviceIndex,
              c10::EventFlag flag) const override {
    if (*event == nullptr) *event = new Clock::time_point;
    if (flag == c10::EventFlag::BACKEND_DEFAULT) RunSynchronize();
    *static_cast<Clock::time_point*>(*event) = Clock::now();
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Clock::time_point*>(event);
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void* event) const override { return event == nullptr || RunsDry(); }
  void synchronizeEvent(void*) const override { RunSynchronize(); }
  double elapsedTime(void* start, void* end, c10::DeviceIndex) const override {
    return std::chrono::duration<double, std::milli>(*static_cast<Clock::time_point*>(end) -
                                                     *static_cast<Clock::time_point*>(start))
        .count();
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Runs the recorded work and waits: a program that polls would never see it finish, because
  // recorded work runs only on request.
  static bool RunsDry() {
    RunSynchronize();
    return true;
  }
  static c10::Device Current() { return c10::Device(kType, kCurrentDevice); }
  static c10::Stream DefaultStream() { return c10::Stream(c10::Stream::DEFAULT, Current()); }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, JaxGuardImpl)

}  // namespace

void SetSynchronize(std::function<void()> synchronize) { Synchronize() = std::move(synchronize); }

void CheckDeviceIndex(c10::DeviceIndex index) {
  TORCH_CHECK(index >= -1 && index < kDeviceCount,
              "there is no device jax:", static_cast<int>(index),
              ": torch_xla_lite has one device.\nUse it:  device='jax'");
}

}  // namespace torch_xla_lite::device
