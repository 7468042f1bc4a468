// The autograd kernel of x[mask] = values, where the values need a gradient.
//
// torch's gradient of the values is `grad[mask]`, whose shape depends on data, so a backward pass
// would have to be interrupted to read the mask. Here the assignment consists of ops whose
// gradients stay in the graph. All other calls of index_put get torch's gradient.
//
//   autograd_library.impl("index_put_", MaskedPut());

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_MASKED_PUT_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_MASKED_PUT_H_

#include <torch/library.h>

namespace torch_xla_lite::kernels_of_torch {

// A kernel for index_put and index_put_.
torch::CppFunction MaskedPut();

}  // namespace torch_xla_lite::kernels_of_torch

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_MASKED_PUT_H_
