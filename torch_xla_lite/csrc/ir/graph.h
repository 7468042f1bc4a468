// Linearises the graph of pending values, and gives it a key that determines what is compiled
// (key.h).
//
//   Root root{&y};
//   Graph graph = Linearize({&root, 1});
//   graph.key;      // steps in post-order, roots, donated leaves
//   graph.leaves;   // arguments of the executable: one buffer for each leaf, and graph.scalars
//
// Linearising writes scratch marks into the nodes, below the record lock and the sync lock
// (runtime/runtime.h).

#ifndef TORCH_XLA_LITE_CSRC_IR_GRAPH_H_
#define TORCH_XLA_LITE_CSRC_IR_GRAPH_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "torch_xla_lite/csrc/ir/key.h"
#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/ir/placement.h"
#include "torch_xla_lite/csrc/ir/record_lock.h"
#include "torch_xla_lite/csrc/ir/thread_annotations.h"

namespace torch_xla_lite::ir {

struct Graph {
  std::vector<uint64_t> key;
  std::vector<Value> leaves;
  std::vector<uint64_t> scalars;
  std::vector<Value> roots;
  // That of the first leaf that is placed on one, or 0.
  uint32_t mesh = 0;
  // For each root of a graph on a mesh: where its holder keeps it. Otherwise empty.
  std::vector<Placement> root_placements;
  // Leaves that the executable donates, but that are needed afterwards (see AdaptTo in donation.h).
  std::vector<uint32_t> copied_leaves;
  // Nodes in the order of the key's steps, including leaves. Used for error messages; kept alive by
  // the roots.
  std::vector<Node*> nodes;

  // What the key says.
  const Description& description() const;
  // StructureHash of the key. Each is found out once, so not by two threads at a time.
  uint64_t structure() const;
  // Says what structure() would find out.
  void set_structure(uint64_t structure) { structure_ = structure; }
  // Gives the graph the key of another one, of equal structure.
  void UseKey(std::span<const uint64_t> other);

  // The data of a leaf. Without the lock: it does not change any more.
  Buffer* data(size_t leaf) const LITE_NO_THREAD_SAFETY_ANALYSIS { return leaves[leaf].buffer(); }

 private:
  mutable std::optional<Description> description_;
  mutable std::optional<uint64_t> structure_;
};

// A pending value to compute, one for each holder that keeps it alive (holders of one value are
// counted, see donation.h).
struct Root {
  const Value* value;
  // The leaf that the holder had before, or nullptr. Only compared: it may have been freed.
  const Node* replaced = nullptr;
  // Where that leaf was: the new value stays there.
  Placement placement = kAnywhere;
  // Whether it is a root only if the others need its node, so that it is computed in any case.
  bool if_needed = false;
};

// Where a value is if that was said without regard to the mesh of its graph: what is on one device
// gets to all of them.
Placement PlacementOn(uint32_t mesh, Placement placement);

// Donates leaves that are not needed afterwards (donation.h), and orders the roots accordingly.
Graph Linearize(std::span<const Root> roots) LITE_REQUIRES(record_lock);

// Stores the results of a graph in its root nodes and releases what they were computed from.
void Commit(const Graph& graph, std::vector<Ref<Buffer>> results) LITE_REQUIRES(record_lock);

}  // namespace torch_xla_lite::ir

#endif  // TORCH_XLA_LITE_CSRC_IR_GRAPH_H_
