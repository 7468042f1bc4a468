#include "torch_xla_lite/csrc/infer/quantized.h"

#include <c10/util/Exception.h>

namespace torch_xla_lite::infer {

void CheckNotQuantized(c10::ScalarType dtype, std::string_view op) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !c10::isQIntType(dtype), "device jax has no quantized tensors (in ", op,
      ").\nKeep quantized tensors and modules on the CPU:  module.cpu()(x.cpu())");
}

void RefuseQuantized(const c10::OperatorHandle& op, torch::jit::Stack*) {
  CheckNotQuantized(c10::ScalarType::QInt8, op.operator_name().name);
}

}  // namespace torch_xla_lite::infer
