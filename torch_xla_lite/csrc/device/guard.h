// The device guard of `jax`: current device, streams, events and synchronisation, for torch.
//
// There is one jax device, and the default stream is its only one, so changing either is a no-op.
// Work is recorded and runs when a value is needed; synchronising the device therefore means to run
// what is recorded and wait for it. The runtime sets the function that does so:
//
//   SetSynchronize([] { runtime::Runtime::Get().Synchronize(); });
//   torch.accelerator.synchronize()    // calls it
//
// The guard registers itself with torch when the library is loaded.

#ifndef TORCH_XLA_LITE_CSRC_DEVICE_GUARD_H_
#define TORCH_XLA_LITE_CSRC_DEVICE_GUARD_H_

#include <c10/core/Device.h>

#include <functional>

namespace torch_xla_lite::device {

// Number of jax devices, and the index of the current one.
inline constexpr c10::DeviceIndex kDeviceCount = 1;
inline constexpr c10::DeviceIndex kCurrentDevice = 0;

// Sets the function that runs all recorded work and waits for it. Call it once, before other
// threads use the device.
void SetSynchronize(std::function<void()> synchronize);

// Raises an error unless `index` is -1 ("the current device") or the index of a device.
void CheckDeviceIndex(c10::DeviceIndex index);

}  // namespace torch_xla_lite::device

#endif  // TORCH_XLA_LITE_CSRC_DEVICE_GUARD_H_
