// torch::jit::Stack, the arguments and results of a boxed call, without torch's header.
//
// That header takes 3 s to parse. Headers that name a stack and have no code for it include this
// one.

#ifndef TORCH_XLA_LITE_CSRC_OPS_STACK_H_
#define TORCH_XLA_LITE_CSRC_OPS_STACK_H_

#include <vector>

namespace c10 {
struct IValue;
}  // namespace c10

namespace torch::jit {
using Stack = std::vector<c10::IValue>;
}  // namespace torch::jit

#endif  // TORCH_XLA_LITE_CSRC_OPS_STACK_H_
