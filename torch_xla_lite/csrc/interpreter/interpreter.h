// Runs a graph without compiling it: op by op, with ATen's CPU kernels.
//
// For graphs that may never come back, which are not worth a compilation.
//
//   Interpreter interpreter(run_lowering, draws_threefry);
//   std::vector<at::Tensor> roots = interpreter.Run(graph, leaves);
//
// Random ops draw the numbers that their lowerings draw (draw.h), unless jax has another generator
// than threefry. Where the CPU's kernel refuses the dtypes of a call, it runs in
// wider ones (wider_dtypes.h). Calls for which there is no kernel run their lowering, which is
// compiled for each. A call that is the last to need the memory of its first operand may have its
// result there: a loop that writes into a tensor copies it once, and a parameter is updated where
// it is. A graph that comes back runs by a plan (plan.h), with the same bits. Not thread-safe.

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_INTERPRETER_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_INTERPRETER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/interpreter/plan.h"
#include "torch_xla_lite/csrc/interpreter/trace.h"
#include "torch_xla_lite/csrc/interpreter/wider_dtypes.h"
#include "torch_xla_lite/csrc/ir/key.h"
#include "torch_xla_lite/csrc/ir/node.h"

namespace torch_xla_lite::ir {
struct Graph;
}  // namespace torch_xla_lite::ir

namespace torch_xla_lite::interpreter {

// Runs the lowering of a call. The operands are dense. Gives a tensor for each output, undefined
// where the signature has none.
using RunLowering = std::function<std::vector<at::Tensor>(const ir::Node& call,
                                                          std::span<const at::Tensor> operands)>;

class Interpreter {
 public:
  // draws_threefry: whether lowerings draw the numbers of kernels/threefry.h; asked at each draw.
  Interpreter(const RunLowering& run_lowering, std::function<bool()> draws_threefry);

  // Makes calls of an op run its lowering.
  void UseLowering(std::string op) { lowered_.insert(std::move(op)); }

  // Whether the CPU has no kernel for a call, so that its lowering is compiled.
  bool RunsLowering(const ir::Signature& call) const;

  struct Leaf {
    at::Tensor tensor;  // In borrowed memory (tensor/host_view.h).
    // Whether it may be overwritten, if the graph donates it.
    bool is_exclusive = false;
  };

  // Computes the roots of a graph. Each is dense and has its memory for itself, which may be that
  // of a donated leaf. Raises what a kernel or lowering raises; then nothing has changed, unless
  // has_written(): the rest of the graph can be computed of what TakeComputed() gives.
  // trace: what the run does is noted there.
  std::vector<at::Tensor> Run(const ir::Graph& graph, std::vector<Leaf> leaves,
                              Trace* trace = nullptr);
  // Whether the last run has written to leaves.
  bool has_written() const { return has_written_; }

  struct Computed {
    ir::Position position;
    at::Tensor tensor;  // As a root.
  };
  std::vector<Computed> TakeComputed() { return std::exchange(computed_, {}); }

  // A plan of a graph whose run was traced.
  std::unique_ptr<Plan> MakePlan(const ir::Graph& graph, const Trace& trace) const;
  // Does what Run does by a plan of the graph.
  std::vector<at::Tensor> Run(Plan& plan, const ir::Graph& graph,
                              std::span<const Plan::Leaf> leaves);

 private:
  bool IsLowered(const ir::Signature& call) const;
  size_t FirstSafeStep(const ir::Description& graph) const;
  std::vector<at::Tensor> RunCall(const ir::Node& node, std::vector<at::Tensor> operands,
                                  bool may_overwrite);
  const RunLowering run_lowering_;
  const std::function<bool()> draws_threefry_;
  std::unordered_set<std::string> lowered_;
  // Of ops with dtypes that their kernels refuse.
  std::unordered_map<std::string, Width> widths_;
  bool has_written_ = false;
  std::vector<Computed> computed_;
};

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_INTERPRETER_H_
