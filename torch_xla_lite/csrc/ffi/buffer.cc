#include "torch_xla_lite/csrc/ffi/buffer.h"

#include <c10/util/Exception.h>

namespace torch_xla_lite::ffi {

c10::ScalarType ScalarTypeOf(XLA_FFI_DataType type) {
  using c10::ScalarType;
  switch (type) {
    case XLA_FFI_DataType_PRED:
      return ScalarType::Bool;
    case XLA_FFI_DataType_S8:
      return ScalarType::Char;
    case XLA_FFI_DataType_S16:
      return ScalarType::Short;
    case XLA_FFI_DataType_S32:
      return ScalarType::Int;
    case XLA_FFI_DataType_S64:
      return ScalarType::Long;
    case XLA_FFI_DataType_U8:
      return ScalarType::Byte;
    case XLA_FFI_DataType_U16:
      return ScalarType::UInt16;
    case XLA_FFI_DataType_U32:
      return ScalarType::UInt32;
    case XLA_FFI_DataType_U64:
      return ScalarType::UInt64;
    case XLA_FFI_DataType_F16:
      return ScalarType::Half;
    case XLA_FFI_DataType_BF16:
      return ScalarType::BFloat16;
    case XLA_FFI_DataType_F32:
      return ScalarType::Float;
    case XLA_FFI_DataType_F64:
      return ScalarType::Double;
    case XLA_FFI_DataType_C64:
      return ScalarType::ComplexFloat;
    case XLA_FFI_DataType_C128:
      return ScalarType::ComplexDouble;
    case XLA_FFI_DataType_F8E5M2:
      return ScalarType::Float8_e5m2;
    case XLA_FFI_DataType_F8E4M3FN:
      return ScalarType::Float8_e4m3fn;
    case XLA_FFI_DataType_F8E5M2FNUZ:
      return ScalarType::Float8_e5m2fnuz;
    case XLA_FFI_DataType_F8E4M3FNUZ:
      return ScalarType::Float8_e4m3fnuz;
    case XLA_FFI_DataType_F8E8M0FNU:
      return ScalarType::Float8_e8m0fnu;
    default:
      TORCH_CHECK(false, "XLA's element type ", static_cast<int>(type),
                  " (XLA_FFI_DataType) has no torch dtype.\n",
                  "Cast the tensor to a dtype that torch has before this op.");
  }
}

}  // namespace torch_xla_lite::ffi
