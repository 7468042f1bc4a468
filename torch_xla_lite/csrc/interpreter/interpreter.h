// Runs a graph without compiling it: op by op, with ATen's CPU kernels.
//
// For graphs that may never come back, which are not worth a compilation.
//
//   Interpreter interpreter(run_lowering);
//   std::vector<at::Tensor> roots = interpreter.Run(graph, leaves);
//
// Random ops draw the numbers that their lowerings draw (draw.h, padded_draws.h). Ops for which the
// CPU has no kernel run their lowering, which is compiled for each. A call that is the last to need
// the memory of its first operand may have its result there: a loop that writes into a tensor
// copies it once. Not thread-safe.

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_INTERPRETER_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_INTERPRETER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "torch_xla_lite/csrc/interpreter/padded_draws.h"
#include "torch_xla_lite/csrc/ir/node.h"

namespace torch_xla_lite::ir {
struct Graph;
}  // namespace torch_xla_lite::ir

namespace torch_xla_lite::interpreter {

class Interpreter {
 public:
  explicit Interpreter(const RunLowering& run_lowering);

  // Makes calls of an op run its lowering.
  void UseLowering(std::string op) { lowered_.insert(std::move(op)); }

  // Computes the roots of a graph. Each is dense and has its memory for itself. `leaves` are those
  // of the graph; they are only read. Raises what a kernel or lowering raises.
  std::vector<at::Tensor> Run(const ir::Graph& graph, std::vector<at::Tensor> leaves);

 private:
  std::vector<at::Tensor> RunCall(const ir::Node& node, std::vector<at::Tensor> operands,
                                  bool may_overwrite);
  const RunLowering run_lowering_;
  PaddedDraws padded_draws_;
  std::unordered_set<std::string> lowered_;
};

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_INTERPRETER_H_
