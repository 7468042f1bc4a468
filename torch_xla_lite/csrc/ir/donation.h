// Donation: which leaves of a graph its executable may overwrite.
//
// A leaf is donated if only nodes of this graph refer to it and a root has its shape: the
// executable may then compute that root in the leaf's memory. A root prefers the memory of the leaf
// that it replaces: an updated parameter takes the memory of the old one, which is not needed by
// then. Donated leaves and their roots are in the same order.
//
//   Graph graph = Linearize(roots);                          // calls DonateLeaves
//   if (AdaptTo(other.key, &graph)) Run(executable, graph);

#ifndef TORCH_XLA_LITE_CSRC_IR_DONATION_H_
#define TORCH_XLA_LITE_CSRC_IR_DONATION_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "torch_xla_lite/csrc/ir/record_lock.h"
#include "torch_xla_lite/csrc/ir/thread_annotations.h"

namespace torch_xla_lite::ir {

class Node;
struct Graph;

// Marks the donated leaves in the key of a graph that was just linearised, and orders its roots.
//
// leaf_words: for each leaf, the index of its word in the key.
// replaced: for each root, the leaf that its holder had before, or nullptr. Only compared.
void DonateLeaves(Graph* graph, std::span<const size_t> leaf_words,
                  std::span<const Node* const> replaced) LITE_REQUIRES(record_lock);

// Prepares a graph for the executable of another key: puts the roots in its order and lists the
// leaves to copy. Returns false, and changes nothing, if the key has another structure, or if that
// executable does not donate all leaves that the graph does: it would need more memory.
bool AdaptTo(std::span<const uint64_t> key, Graph* graph);

}  // namespace torch_xla_lite::ir

#endif  // TORCH_XLA_LITE_CSRC_IR_DONATION_H_
