// A model of what graphs cost: a sum over their ops, of which each costs something for each call,
// element and multiplication. No clock is read, so a program decides the same in each run.
//
//   CostModel model;
//   model.Set({{"aten::mm", {.interpretation = {.call = 3, .product = 1e-4}}}}, {});
//   model.Of(description).interpretation;   // microseconds of one core
//
// The numbers are fitted to measurements (scripts/bench/costs.py) and come from Python when the
// package is imported.

#ifndef TORCH_XLA_LITE_CSRC_RUNTIME_COSTS_H_
#define TORCH_XLA_LITE_CSRC_RUNTIME_COSTS_H_

#include <string>
#include <unordered_map>

namespace torch_xla_lite::ir {
struct Description;
struct Step;
}  // namespace torch_xla_lite::ir

namespace torch_xla_lite::runtime {

// What the cost of a call depends on.
struct CallSize {
  double calls;     // One for each result: an op on lists of tensors is a call for each of them.
  double operands;  // Their elements.
  double results;   // Theirs.
  double products;  // Multiplications, if the op is a product of tensors.
};

// The size of a step that is a call. A write through a view has the size of what it writes.
CallSize SizeOf(const ir::Description& graph, const ir::Step& step);

// Of a run of an op, in microseconds: for each call, element and multiplication.
struct RunCosts {
  double Of(const CallSize& size) const {
    return call * size.calls + operand * size.operands + result * size.results +
           product * size.products;
  }

  double call = 0;
  double operand = 0;
  double result = 0;
  double product = 0;
};

struct OpCosts {
  RunCosts interpretation = {};  // One that costs infinitely much cannot be interpreted.
  RunCosts execution = {};       // In a compiled graph.
  double compilation = 0;        // For each call.
};

// Of any graph, in microseconds.
struct GraphCosts {
  double compilation = 0;           // In addition to that of the ops.
  double argument_compilation = 0;  // For each leaf and each root.
  double execution = 0;             // Of running a compiled graph, in addition to its ops.
  double argument_execution = 0;
  double load = 0;       // From disk.
  double load_part = 0;  // In addition, this part of what compiling costs.
  double start = 0;      // Of a compiler that a process does not have yet.
};

// Of one graph, in microseconds.
struct Costs {
  double interpretation = 0;  // One run.
  double compilation = 0;
  double load = 0;
  double execution = 0;  // One run of the compiled graph.
};

class CostModel {
 public:
  // ops: by name. kWrite is that of each write through a view, kOther that of all other ops.
  void Set(std::unordered_map<std::string, OpCosts> ops, const GraphCosts& graph);
  Costs Of(const ir::Description& graph) const;
  // Of one step, which is a call.
  double start() const { return graph_.start; }
  double InterpretationOf(const ir::Description& graph, const ir::Step& step) const;

  inline static const std::string kWrite = "write";
  inline static const std::string kOther = "other";

 private:
  const OpCosts& CostsOf(const ir::Step& step) const;

  std::unordered_map<std::string, OpCosts> ops_;
  GraphCosts graph_;
};

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_COSTS_H_
