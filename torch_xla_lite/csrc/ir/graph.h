// Linearises the graph of pending values, and gives it a key that determines what is compiled
// (key.h).
//
//   Root root{&y};
//   Graph graph = Linearize({&root, 1});
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

struct Graph {
  std::vector<uint64_t> key;
  std::vector<Value> leaves;
  std::vector<uint64_t> scalars;
  std::vector<Value> roots;
  // Leaves that the executable donates, but that are needed afterwards (see AdaptTo).
  std::vector<uint32_t> copied_leaves;
  // Nodes in the order of the key's steps, including leaves. Used for error messages; kept alive by
  // the roots.
  std::vector<Node*> nodes;
};

// A pending value to compute, one for each holder that keeps it alive (holders of one value are
// counted, see Linearize).
struct Root {
  const Value* value;
  // The leaf that the holder had before, or nullptr. Only compared: it may have been freed.
  const Node* replaced = nullptr;
  // Whether it is a root only if the others need its node, so that it is computed in any case.
  bool if_needed = false;
};

// Donation: a leaf is donated if only nodes of this graph refer to it and a root has its shape: the
// executable may then compute that root in the leaf's memory. A root prefers the memory of the leaf
// that it replaces: an updated parameter takes the memory of the old one, which is not needed by
// then. Donated leaves and their roots are in the same order.
Graph Linearize(std::span<const Root> roots);

// Prepares a graph for the executable of a key with the same structure: puts the roots in its order
// and lists the leaves to copy. Returns false, and changes nothing, if that executable does not
// donate all leaves that the graph does: it would need more memory.
bool AdaptTo(std::span<const uint64_t> key, Graph* graph);

// Stores the results of a graph in its root nodes and releases what they were computed from.
void Commit(const Graph& graph, std::vector<Ref<Buffer>> results);

}  // namespace torch_xla_lite::ir

#endif  // TORCH_XLA_LITE_CSRC_IR_GRAPH_H_
