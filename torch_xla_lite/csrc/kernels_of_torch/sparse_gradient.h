// Refuses nn.Embedding(sparse=True), for which the device has no gradient: a sparse tensor.
//
// The error is raised by the forward pass, at the line that the user can change.
//
//   autograd_library.impl("embedding", RefuseSparseGradient());

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_SPARSE_GRADIENT_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_SPARSE_GRADIENT_H_

#include <torch/library.h>

namespace torch_xla_lite::kernels_of_torch {

// A kernel for ops whose first argument is a weight and that have an argument `sparse`.
torch::CppFunction RefuseSparseGradient();

}  // namespace torch_xla_lite::kernels_of_torch

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_SPARSE_GRADIENT_H_
