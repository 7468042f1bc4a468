// Identifies nodes of autograd: that of the op that is being recorded, and the one that is running.
//
//   LastNode();       // the last node that this thread has made
//   RunningNode();    // the node whose gradient is being computed
//
// A file of its own, because torch's header of nodes takes 4 s to parse.

#ifndef TORCH_XLA_LITE_CSRC_PYTHON_AUTOGRAD_NODE_H_
#define TORCH_XLA_LITE_CSRC_PYTHON_AUTOGRAD_NODE_H_

#include <cstdint>
#include <optional>

namespace torch_xla_lite::python {

// Nodes are numbered in the order in which a thread makes them.
struct NodeId {
  uint64_t thread = 0;
  uint64_t number = 0;

  bool operator==(const NodeId&) const = default;
};

std::optional<NodeId> LastNode();

std::optional<NodeId> RunningNode();

}  // namespace torch_xla_lite::python

#endif  // TORCH_XLA_LITE_CSRC_PYTHON_AUTOGRAD_NODE_H_
