// A kernel for an op, by its name, that needs more than being recorded.
//
//   constexpr NamedKernel kKernels[] = {{"copy_", Boxed<Copy>}};
//
// Such kernels are boxed like the recorder, so that each takes a line in a table and little compile
// time.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_NAMED_KERNEL_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_NAMED_KERNEL_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <algorithm>

#include "torch_xla_lite/csrc/tensor/tensor_impl.h"

namespace torch_xla_lite::kernels_of_torch {

struct NamedKernel {
  const char* name;  // Without "aten::": "copy_", "set_.source_Tensor".
  torch::CppFunction (*function)();
};

inline bool IsJax(const at::Tensor& tensor) {
  return tensor.device().type() == c10::DeviceType::PrivateUse1;
}

// Whether a tensor is fake: a meta tensor with device jax, or one that is just being converted.
inline bool IsForeign(const c10::IValue& argument) {
  if (!argument.isTensor() || !argument.toTensor().defined()) return false;
  const at::Tensor& tensor = argument.toTensor();
  return (tensor.is_meta() || IsJax(tensor)) && tensor::XTensorImpl::From(tensor) == nullptr;
}

using BoxedKernel = void (*)(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack*);

// Fake tensors have shapes but no values, so meta kernels serve them.
template <BoxedKernel kernel>
void OwnTensorsOnly(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                    torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  if (std::any_of(arguments.begin(), arguments.end(), IsForeign)) {
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), stack);
  } else {
    kernel(op, keys, stack);
  }
}

template <BoxedKernel kernel>
torch::CppFunction Boxed() {
  return torch::CppFunction::makeFromBoxedFunction<&OwnTensorsOnly<kernel>>();
}

}  // namespace torch_xla_lite::kernels_of_torch

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_OF_TORCH_NAMED_KERNEL_H_
