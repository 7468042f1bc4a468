// Refuses quantized tensors, which the device does not have.
//
//   CheckNotQuantized(at::kQInt8, "aten::quantize_per_tensor");   // throws
//
// Quantization-aware training has none: it rounds floats (fake_quantize.h).

#ifndef TORCH_XLA_LITE_CSRC_INFER_QUANTIZED_H_
#define TORCH_XLA_LITE_CSRC_INFER_QUANTIZED_H_

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/ScalarType.h>

#include <string_view>

namespace torch_xla_lite::infer {

// Throws c10::NotImplementedError, naming the op, for a dtype of quantized tensors.
void CheckNotQuantized(c10::ScalarType dtype, std::string_view op);

// The kernel of all ops of quantized tensors: throws this error.
void RefuseQuantized(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace torch_xla_lite::infer

#endif  // TORCH_XLA_LITE_CSRC_INFER_QUANTIZED_H_
