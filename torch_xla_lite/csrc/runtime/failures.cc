#include "torch_xla_lite/csrc/runtime/failures.h"

#include <algorithm>

#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/key.h"

namespace torch_xla_lite::runtime {

NodeSet NodesThatNeed(const std::vector<ir::Ref<ir::Node>>& calls,
                      const std::vector<ir::Root>& roots) {
  NodeSet found;
  for (const auto& call : calls) found.insert(call.get());
  const ir::Graph graph = ir::Linearize(roots);
  const std::vector<ir::Step>& steps = graph.description().steps;
  std::vector<bool> needs(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].kind == ir::StepKind::kLeaf) continue;
    needs[i] = found.contains(graph.nodes[i]) ||
               std::ranges::any_of(steps[i].operands, [&](auto at) { return needs[at.step]; });
    if (needs[i]) found.insert(graph.nodes[i]);
  }
  return found;
}

}  // namespace torch_xla_lite::runtime
