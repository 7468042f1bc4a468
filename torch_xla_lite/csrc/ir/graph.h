// Linearises the graph of pending values, and gives it a key that determines what is compiled.
//
// Two graphs with equal keys do the same computation on different data: they may share one
// executable. The key is also the description that the compiler reads (see Step), so the
// compiler cannot depend on anything that is missing from the key.
//
//   std::array<Value, 1> roots{y};
//   Graph graph = Linearize(roots);
//   graph.key;      // steps in post-order, roots, donated leaves
//   graph.leaves;   // arguments of the executable: one buffer for each leaf, and graph.scalars
//
// Linearising writes scratch marks into the nodes: only one thread may linearise at a time.

#ifndef TORCH_XLA_LITE_CSRC_IR_GRAPH_H_
#define TORCH_XLA_LITE_CSRC_IR_GRAPH_H_

#include <cstdint>
#include <span>
#include <vector>

#include "torch_xla_lite/csrc/ir/node.h"

namespace torch_xla_lite::ir {

// The position of a value in a graph: the step that produces it, and the index of the result.
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
  // Nodes in the order of the key's steps, including leaves. Used for error messages; kept alive by
  // the roots.
  std::vector<Node*> nodes;
};

struct Description {
  std::vector<Step> steps;
  std::vector<Position> roots;
};

// `roots`: pending values, one for each holder that keeps it alive (holders of one value are
// counted, see donation).
//
// Donation: a leaf is donated if only nodes of this graph refer to it and a root has its shape: the
// executable may then compute that root in the leaf's memory. `replaced`, if given, has for each
// root the leaf that its holder had before, or nullptr (addresses are compared, never read
// through). A root prefers the memory of that leaf: an updated parameter takes the memory of the
// old one, which is not needed by then. Donated leaves and their roots are in the same order.
Graph Linearize(std::span<const Value* const> roots, std::span<const Node* const> replaced = {});

// Reads a key back.
Description Describe(std::span<const uint64_t> key);

// Stores the results of a graph in its root nodes and releases what they were computed from.
void Commit(const Graph& graph, std::vector<Ref<Buffer>> results);

}  // namespace torch_xla_lite::ir

#endif  // TORCH_XLA_LITE_CSRC_IR_GRAPH_H_
