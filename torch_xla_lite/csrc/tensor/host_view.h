// Wraps borrowed memory as a CPU tensor, without a copy.
//
//   at::Tensor view(HostView(c10::ScalarType::Float, {2, 3}, data));
//
// The memory is dense and row-major. The view does not own it: it is valid as long as the memory
// is, and must not be resized (torch raises an error if a kernel tries).

#ifndef TORCH_XLA_LITE_CSRC_TENSOR_HOST_VIEW_H_
#define TORCH_XLA_LITE_CSRC_TENSOR_HOST_VIEW_H_

#include <ATen/core/TensorBase.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>

namespace torch_xla_lite::tensor {

at::TensorBase HostView(c10::ScalarType dtype, c10::ArrayRef<int64_t> dimensions, void* data);

}  // namespace torch_xla_lite::tensor

#endif  // TORCH_XLA_LITE_CSRC_TENSOR_HOST_VIEW_H_
