// The hooks that torch's generic code calls on the backend: generators, device count, memory.
//
//   torch.Generator(device='jax')     # getNewGenerator
//   torch.manual_seed(0)              # getDefaultGenerator, through torch.jax
//   torch.accelerator.device_count()  # deviceCount
//
// They register themselves with torch when the library is loaded. There is no header because the
// rest of the library does not use them.

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/util/Exception.h>

#include "torch_xla_lite/csrc/device/generator.h"
#include "torch_xla_lite/csrc/device/guard.h"
#include "torch_xla_lite/csrc/device/host_memory.h"

namespace torch_xla_lite::device {
namespace {

class JaxHooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex index) const override {
    CheckDeviceIndex(index);
    return true;
  }

  c10::DeviceIndex deviceCount() const override { return kDeviceCount; }
  c10::DeviceIndex getCurrentDevice() const override { return kCurrentDevice; }
  void setCurrentDevice(c10::DeviceIndex index) const override { CheckDeviceIndex(index); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    CheckDeviceIndex(index);
    return kCurrentDevice;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return exchangeDevice(index);
  }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    CheckDeviceIndex(index);
    return DefaultGeneratorHandle();
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    CheckDeviceIndex(index);
    return at::make_generator<JaxGenerator>();
  }

  at::Allocator* getPinnedMemoryAllocator() const override { return PinnedMemoryAllocator(); }
  bool isPinnedPtr(const void* address) const override { return IsPinned(address); }

  at::Device getDeviceFromPtr(void*) const override {
    TORCH_CHECK(false,
                "Tensors on device jax have no address: XLA owns their memory and may not have "
                "computed them yet.\n"
                "Take the values to the CPU first:  tensor.cpu()");
  }
  void resizePrivateUse1Bytes(const c10::Storage&, size_t) const override {
    TORCH_CHECK(false,
                "The storage of a tensor on device jax cannot be resized.\n"
                "Make a new tensor of the right size, or use Tensor.resize_().");
  }
};

const bool kRegistered = [] {
  // torch keeps the pointer until the process ends.
  at::RegisterPrivateUse1HooksInterface(new JaxHooks());
  return true;
}();

}  // namespace
}  // namespace torch_xla_lite::device
