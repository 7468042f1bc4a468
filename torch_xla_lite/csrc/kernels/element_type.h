// From the element type of XLA's buffers to the C++ type of the kernels.
//
//   return ForFloat("torch_xla_lite::op", buffer.element_type(), [&]<typename T>(T) {
//     return Run<T>(...);                        // T is float, double, BFloat16 or Half
//   });
//
// It is not in element.h because XLA's header takes longer to compile than the loops of a kernel.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_ELEMENT_TYPE_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_ELEMENT_TYPE_H_

#include <xla/ffi/api/ffi.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "torch_xla_lite/csrc/kernels/element.h"

namespace torch_xla_lite::kernels {

namespace xffi = ::xla::ffi;

inline xffi::DataType AccumulatorType(xffi::DataType type) {
  return type == xffi::DataType::F64 ? xffi::DataType::F64 : xffi::DataType::F32;
}

inline xffi::Error Invalid(std::string_view op, const std::string& problem) {
  return xffi::Error(xffi::ErrorCode::kInvalidArgument, std::string(op) + ": " + problem);
}

inline bool IsIndex(xffi::DataType type) {
  return type == xffi::DataType::S32 || type == xffi::DataType::S64;
}

// Calls `run` with a value of the C++ type of floating-point elements.
template <typename Run>
xffi::Error ForFloat(std::string_view op, xffi::DataType type, Run&& run) {
  switch (type) {
    case xffi::DataType::F32:
      return run(float{});
    case xffi::DataType::F64:
      return run(double{});
    case xffi::DataType::BF16:
      return run(BFloat16{});
    case xffi::DataType::F16:
      return run(Half{});
    default:
      return Invalid(op, "expects float32, float64, bfloat16 or float16.");
  }
}

// Calls `run` with a value of the C++ type of labels and offsets. Requires IsIndex(type).
template <typename Run>
xffi::Error ForIndex(xffi::DataType type, Run&& run) {
  return type == xffi::DataType::S64 ? run(int64_t{}) : run(int32_t{});
}

}  // namespace torch_xla_lite::kernels

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_ELEMENT_TYPE_H_
