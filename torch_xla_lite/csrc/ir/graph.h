// Graphs: pending values put into one order, with a key that says exactly what has to be compiled.
//
// Two graphs with equal keys do the same computation on different data: they may share one
// executable. The key is also the description that the compiler reads (see Step), so there is
// nothing that it could see and the key not say.
//
//   std::array<Value, 1> roots{y};
//   Graph graph = Linearize(roots);
//   graph.key;      // steps in post-order, roots, donated leaves
//   graph.leaves;   // arguments of the executable: one buffer for each leaf, and graph.scalars
//
// Linearising writes scratch marks into the nodes: only one thread may do it at a time.

#ifndef TORCH_XLA_LITE_CSRC_IR_GRAPH_H_
#define TORCH_XLA_LITE_CSRC_IR_GRAPH_H_

#include <cstdint>
#include <span>
#include <vector>

#include "torch_xla_lite/csrc/ir/node.h"

namespace torch_xla_lite::ir {

// Where a value stands in a graph: the step that gives it, and which of the step's results it is.
struct Position {
  uint32_t step;
  uint32_t output;
};

// One line of a graph, as its key describes it: a leaf (no signature), or an op call.
struct Step {
  const Shape* leaf = nullptr;
  bool donated = false;
  const Signature* signature = nullptr;
  std::vector<Position> operands;
  uint32_t num_scalars = 0;
};

struct Graph {
  std::vector<uint64_t> key;
  std::vector<Value> leaves;
  std::vector<uint64_t> scalars;
  std::vector<Value> roots;
  // Nodes in the order of the key's steps; leaves among them. For messages; borrowed from roots.
  std::vector<Node*> nodes;
};

struct Description {
  std::vector<Step> steps;
  std::vector<Position> roots;
};

// `roots`: pending values, one for each holder that keeps it alive (holders of one value are
// counted, see donation).
//
// Donation: a leaf that nothing but this graph's own nodes refers to, and whose shape a root has,
// is donated: the executable may compute that root in the leaf's memory. `replaced`, if given, has
// for each root the leaf that its holder had before (compared, not looked at), or nullptr. A root
// takes the memory of that leaf rather than another's: the new parameter that of the old one, which
// nothing needs any more by then. Donated leaves and their roots stand in the same order.
Graph Linearize(std::span<const Value* const> roots, std::span<const Node* const> replaced = {});

// Reads a key back.
Description Describe(std::span<const uint64_t> key);

// Puts the results of a graph into its root nodes and lets go of what they were computed from.
void Commit(const Graph& graph, std::vector<Ref<Buffer>> results);

}  // namespace torch_xla_lite::ir

#endif  // TORCH_XLA_LITE_CSRC_IR_GRAPH_H_
