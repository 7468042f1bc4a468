// Converts 16-bit floats to float32, the dtype in which ATen's kernels compute them.

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_OPMATH_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_OPMATH_H_

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

namespace torch_xla_lite::interpreter {

inline at::Tensor ToOpmath(const at::Tensor& tensor) {
  return c10::isReducedFloatingType(tensor.scalar_type()) ? tensor.to(at::kFloat) : tensor;
}

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_OPMATH_H_
