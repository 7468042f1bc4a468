// Computes one step of an LSTM or GRU, and its gradient, by ATen's CPU kernels.
//
// nn.LSTMCell and nn.GRUCell call these ops on every device but the CPU, for which torch has no
// kernel of them. The arguments, results and workspaces are those of the lowerings
// (lowering/recurrent.py): a compiled graph may continue what an interpreted one began.

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_RECURRENT_CELL_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_RECURRENT_CELL_H_

#include <ATen/core/stack.h>

namespace torch_xla_lite::interpreter {

// Replace the arguments on the stack by the results.
void LstmCell(torch::jit::Stack* stack);          // aten::_thnn_fused_lstm_cell
void LstmCellBackward(torch::jit::Stack* stack);  // aten::_thnn_fused_lstm_cell_backward_impl
void GruCell(torch::jit::Stack* stack);           // aten::_thnn_fused_gru_cell
void GruCellBackward(torch::jit::Stack* stack);   // aten::_thnn_fused_gru_cell_backward

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_RECURRENT_CELL_H_
