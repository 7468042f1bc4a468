// Computes the recurrence of an LSTM, GRU or RNN layer, and its gradient, by ATen's CPU kernels.
//
// The arguments and results are those of torch_xla_lite::recurrence (lowering/recurrent_ops.py),
// whose lowerings (lowering/recurrent.py) compute the same as scans. Only the loop over time steps
// has ops for each step; everything that does not depend on the state before is computed at once.

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_RECURRENCE_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_RECURRENCE_H_

#include <ATen/core/stack.h>

namespace torch_xla_lite::interpreter {

// Replace the arguments on the stack by the results.
void Recurrence(torch::jit::Stack* stack);
void RecurrenceBackward(torch::jit::Stack* stack);

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_RECURRENCE_H_
