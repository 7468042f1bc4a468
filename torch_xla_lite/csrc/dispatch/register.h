// Puts the kernels of device jax into torch's dispatcher.
//
//   RegisterKernels();      // once, when the package is imported
//
// The recorder is registered for each op by name. A fallback for the whole key would not do: torch
// prefers its own composite kernels to a fallback, and they would take an op apart into others,
// slower and harder to compile well.

#ifndef TORCH_XLA_LITE_CSRC_DISPATCH_REGISTER_H_
#define TORCH_XLA_LITE_CSRC_DISPATCH_REGISTER_H_

namespace torch_xla_lite::dispatch {

void RegisterKernels();

}  // namespace torch_xla_lite::dispatch

#endif  // TORCH_XLA_LITE_CSRC_DISPATCH_REGISTER_H_
