// Registers the kernels of device jax with torch's dispatcher.
//
//   RegisterKernels();      // once, when the package is imported
//
// The recorder is registered for each aten op by name. A fallback for the whole dispatch key would
// not suffice: torch prefers its composite kernels to a fallback, and they would decompose ops into
// others, which are slower to record and harder to compile well. Ops of other libraries are not
// known in advance: they use a fallback, until a lowering is registered for them.
//
//   RegisterLowering("example::softsign", /*needs_constants=*/false);

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_REGISTER_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_REGISTER_H_

#include <string>

namespace torch_xla_lite::kernels_of_torch {

void RegisterKernels();

// Makes the recorder record the op, which now has a lowering, as one node, even if torch has a
// composite kernel for it. Throws if there is no such op, or if it cannot be recorded as one node.
void RegisterLowering(const std::string& name, bool needs_constants);

}  // namespace torch_xla_lite::kernels_of_torch

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_REGISTER_H_
