#include "torch_xla_lite/csrc/python/autograd_node.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/node.h>

namespace torch_xla_lite::python {

std::optional<NodeId> LastNode() {
  const uint64_t next = at::sequence_number::peek();
  if (next == 0) return std::nullopt;
  return NodeId{at::RecordFunction::currentThreadId(), next - 1};
}

std::optional<NodeId> RunningNode() {
  const auto node = torch::autograd::get_current_node();
  if (!node) return std::nullopt;
  return NodeId{node->thread_id(), node->sequence_nr()};
}

}  // namespace torch_xla_lite::python
