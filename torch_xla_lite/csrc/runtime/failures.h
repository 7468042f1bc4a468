// After a graph has failed: which of its calls the error may come from, and what needs them.
//
//   for (const ir::Value& result : ResultsOf("aten::mm", roots)) Run(result);  // which one fails?
//   const NodeSet doomed = NodesThatNeed({failed.node}, roots);                // the others run
//
// All functions linearise the roots, so they require the record lock, and the sync lock
// (runtime.h).

#ifndef TORCH_XLA_LITE_CSRC_RUNTIME_FAILURES_H_
#define TORCH_XLA_LITE_CSRC_RUNTIME_FAILURES_H_

#include <string>
#include <unordered_set>
#include <vector>

#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/ir/record_lock.h"
#include "torch_xla_lite/csrc/ir/thread_annotations.h"

namespace torch_xla_lite::ir {
struct Root;
}  // namespace torch_xla_lite::ir

namespace torch_xla_lite::runtime {

using NodeSet = std::unordered_set<const ir::Node*>;

// A result of each pending call of an op, in the order in which they run.
std::vector<ir::Value> ResultsOf(const std::string& op, const std::vector<ir::Root>& roots)
    LITE_REQUIRES(ir::record_lock);

// The pending nodes that need one of the calls, these among them.
NodeSet NodesThatNeed(const std::vector<ir::Ref<ir::Node>>& calls,
                      const std::vector<ir::Root>& roots) LITE_REQUIRES(ir::record_lock);

// The same for the calls that MarkSuspects has marked.
NodeSet NodesThatNeedSuspects(const std::vector<ir::Root>& roots) LITE_REQUIRES(ir::record_lock);

// After an error that names no op, mostly lack of memory: marks the calls with the largest results,
// or `all`, unless the graph has marked ones. Nothing is tried, because the error is to arrive at
// once.
void MarkSuspects(const std::vector<ir::Root>& roots, bool all) LITE_REQUIRES(ir::record_lock);

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_FAILURES_H_
