// What torch asks of a device: which one is current, its streams and events, when its work is done.
//
// There is one jax device and no stream besides the default one, so changing either is a no-op.
// Work is recorded and runs when a value is needed; waiting for the device therefore means running
// what is recorded. The runtime says how:
//
//   SetSynchronize([] { runtime::SyncAll(); });
//   torch.accelerator.synchronize()    # calls it
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

// Sets what runs all recorded work and waits for it. To be called once, before other threads use
// the device.
void SetSynchronize(std::function<void()> synchronize);

// Raises the error that torch users know from CUDA when `index` is neither -1 ("the current
// device") nor a device.
void CheckDeviceIndex(c10::DeviceIndex index);

}  // namespace torch_xla_lite::device

#endif  // TORCH_XLA_LITE_CSRC_DEVICE_GUARD_H_
