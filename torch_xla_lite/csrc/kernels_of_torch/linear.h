// The autograd kernel of aten::linear, which the recorder records as a single op.
//
// As a single op it has no forward derivative in torch, and no second derivative for complex
// numbers. For complex and for dual numbers this kernel calls a product and a sum, as on the CPU.
//
//   autograd_library.impl("linear", Linear());

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_LINEAR_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_LINEAR_H_

#include <torch/library.h>

namespace torch_xla_lite::kernels_of_torch {

// The kernel for AutogradPrivateUse1. To be called once torch's kernel for that key is in force,
// that is, after the kernel for PrivateUse1 was registered and before this one is.
torch::CppFunction Linear();

}  // namespace torch_xla_lite::kernels_of_torch

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_LINEAR_H_
