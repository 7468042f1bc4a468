// Wraps XLA's buffers as torch tensors, without a copy.
//
//   at::Tensor view = View(ScalarTypeOf(buffer.element_type()), dimensions, buffer.untyped_data());
//
// XLA passes dense row-major buffers to custom calls. A view does not own its buffer: it is valid
// during the call only, and must not be resized (torch raises an error if a kernel tries).

#ifndef TORCH_XLA_LITE_CSRC_FFI_BUFFER_H_
#define TORCH_XLA_LITE_CSRC_FFI_BUFFER_H_

#include <ATen/core/TensorBase.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>
#include <xla/ffi/api/c_api.h>

#include <cstdint>

namespace torch_xla_lite::ffi {

// The torch dtype of XLA's element type. Raises if torch has none.
c10::ScalarType ScalarTypeOf(XLA_FFI_DataType type);

at::TensorBase View(c10::ScalarType dtype, c10::ArrayRef<int64_t> dimensions, void* data);

}  // namespace torch_xla_lite::ffi

#endif  // TORCH_XLA_LITE_CSRC_FFI_BUFFER_H_
