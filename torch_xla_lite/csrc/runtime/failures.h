// After calls of a graph have failed: what needs them.
//
//   const NodeSet doomed = NodesThatNeed(failed, roots);     // the other roots can be computed
//
// Linearises the roots, so it requires the record lock, and the sync lock (runtime.h).

#ifndef TORCH_XLA_LITE_CSRC_RUNTIME_FAILURES_H_
#define TORCH_XLA_LITE_CSRC_RUNTIME_FAILURES_H_

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

// The pending nodes that need one of the calls, these among them.
NodeSet NodesThatNeed(const std::vector<ir::Ref<ir::Node>>& calls,
                      const std::vector<ir::Root>& roots) LITE_REQUIRES(ir::record_lock);

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_FAILURES_H_
