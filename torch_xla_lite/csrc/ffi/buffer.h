// Converts the element types of XLA's buffers to torch's dtypes.
//
//   ScalarTypeOf(XLA_FFI_DataType_F32) == c10::ScalarType::Float;

#ifndef TORCH_XLA_LITE_CSRC_FFI_BUFFER_H_
#define TORCH_XLA_LITE_CSRC_FFI_BUFFER_H_

#include <c10/core/ScalarType.h>
#include <xla/ffi/api/c_api.h>

namespace torch_xla_lite::ffi {

// The torch dtype of XLA's element type. Raises if torch has none.
c10::ScalarType ScalarTypeOf(XLA_FFI_DataType type);

}  // namespace torch_xla_lite::ffi

#endif  // TORCH_XLA_LITE_CSRC_FFI_BUFFER_H_
