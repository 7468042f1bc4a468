#include "torch_xla_lite/csrc/runtime/failures.h"

#include <algorithm>
#include <cstdint>

#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/key.h"
#include "torch_xla_lite/csrc/ir/shape.h"

namespace torch_xla_lite::runtime {
namespace {

// The pending nodes that need a call for which `is_one` holds, these calls among them.
template <typename IsOne>
NodeSet NodesThatNeedAny(IsOne is_one, const std::vector<ir::Root>& roots)
    LITE_REQUIRES(ir::record_lock) {
  NodeSet found;
  const ir::Graph graph = ir::Linearize(roots);
  const std::vector<ir::Step> steps = ir::Describe(graph.key).steps;
  std::vector<bool> needs(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].signature == nullptr) continue;
    needs[i] = is_one(*graph.nodes[i]) ||
               std::ranges::any_of(steps[i].operands, [&](auto at) { return needs[at.step]; });
    if (needs[i]) found.insert(graph.nodes[i]);
  }
  return found;
}

std::vector<ir::Node*> CallsIn(const ir::Graph& graph) {
  const std::vector<ir::Step> steps = ir::Describe(graph.key).steps;
  std::vector<ir::Node*> calls;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].signature != nullptr) calls.push_back(graph.nodes[i]);
  }
  return calls;
}

// The number of elements of a call's largest result.
int64_t SizeOf(const ir::Node& call) {
  int64_t size = 0;
  for (const ir::Shape* shape : call.signature().outputs) {
    if (shape != nullptr) size = std::max(size, shape->NumElements());
  }
  return size;
}

}  // namespace

std::vector<ir::Value> ResultsOf(const std::string& op, const std::vector<ir::Root>& roots) {
  std::vector<ir::Value> results;
  const ir::Graph graph = ir::Linearize(roots);
  for (ir::Node* call : CallsIn(graph)) {
    if (call->signature().op != op) continue;
    const auto& outputs = call->signature().outputs;
    const auto defined =
        std::ranges::find_if(outputs, [](auto* shape) { return shape != nullptr; });
    results.push_back(
        {ir::Ref<ir::Node>::Share(call), static_cast<uint32_t>(defined - outputs.begin())});
  }
  return results;
}

NodeSet NodesThatNeed(const std::vector<ir::Ref<ir::Node>>& calls,
                      const std::vector<ir::Root>& roots) {
  if (calls.empty()) return {};
  const auto is_one = [&](const ir::Node& node) {
    return std::ranges::any_of(calls, [&](const auto& call) { return call.get() == &node; });
  };
  return NodesThatNeedAny(is_one, roots);
}

NodeSet NodesThatNeedSuspects(const std::vector<ir::Root>& roots) {
  return NodesThatNeedAny(
      [](const ir::Node& call) LITE_REQUIRES(ir::record_lock) { return call.is_suspect; }, roots);
}

void MarkSuspects(const std::vector<ir::Root>& roots, bool all) {
  const ir::Graph graph = ir::Linearize(roots);
  const std::vector<ir::Node*> calls = CallsIn(graph);
  if (std::ranges::any_of(calls, &ir::Node::is_suspect)) return;
  int64_t largest = 0;
  for (const ir::Node* call : calls) largest = std::max(largest, SizeOf(*call));
  for (ir::Node* call : calls) call->is_suspect = all || SizeOf(*call) == largest;
}

}  // namespace torch_xla_lite::runtime
