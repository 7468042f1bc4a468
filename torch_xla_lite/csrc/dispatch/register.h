// Puts the kernels of device jax into torch's dispatcher.
//
//   RegisterKernels();      // once, when the package is imported
//
// The recorder is registered for each op by name. A fallback for the whole key would not do: torch
// prefers its own composite kernels to a fallback, and they would take an op apart into others,
// slower and harder to compile well. Of ops of other libraries it is known only later which those
// are: they come by a fallback, until one gets a lowering of its own.
//
//   RegisterLowering("example::softsign", /*needs_constants=*/false);

#ifndef TORCH_XLA_LITE_CSRC_DISPATCH_REGISTER_H_
#define TORCH_XLA_LITE_CSRC_DISPATCH_REGISTER_H_

#include <string>

namespace torch_xla_lite::dispatch {

void RegisterKernels();

// Makes the op, which the compiler can lower from now on, be recorded whole, also where torch has a
// composite kernel for it. Throws when there is no such op, or when it cannot arrive whole.
void RegisterLowering(const std::string& name, bool needs_constants);

}  // namespace torch_xla_lite::dispatch

#endif  // TORCH_XLA_LITE_CSRC_DISPATCH_REGISTER_H_
