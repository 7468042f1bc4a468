// Completes results of ATen's CPU kernels that only gradients read.
//
// The kernel of an op may leave such a result empty, or give it a size that depends on data, where
// torch's meta function, and so the graph, has one that does not. Or it gives it strides that slow
// what reads it down.
//
//   if (const auto complete = FindCompletion(facts.completed_by)) complete(arguments, &results);

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_COMPLETION_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_COMPLETION_H_

#include <ATen/core/stack.h>

#include <string_view>

namespace torch_xla_lite::interpreter {

using Completion = void (*)(const torch::jit::Stack& arguments, torch::jit::Stack* results);

// By the fact `completed_by` of an op; nullptr for the empty name.
Completion FindCompletion(std::string_view name);

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_COMPLETION_H_
