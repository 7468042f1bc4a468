// What torch's CPU kernels do not check, although they read or write other memory, or end the
// process, if it is not so.
//
//   const Condition holds = FindCondition(FactsOf("aten::_ctc_loss.Tensor").kernel_needs);
//   if (holds != nullptr && !holds(stack)) ...    // the arguments of the call, tensors on the CPU

#ifndef TORCH_XLA_LITE_CSRC_ATEN_CONDITIONS_H_
#define TORCH_XLA_LITE_CSRC_ATEN_CONDITIONS_H_

#include <ATen/core/stack.h>

#include <string_view>

namespace torch_xla_lite::aten {

using Condition = bool (*)(const torch::jit::Stack&);

// `name` is the fact kernel_needs of an op; null for the empty one. Raises for others.
Condition FindCondition(std::string_view name);

}  // namespace torch_xla_lite::aten

#endif  // TORCH_XLA_LITE_CSRC_ATEN_CONDITIONS_H_
