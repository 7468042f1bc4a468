#include "torch_xla_lite/csrc/runtime/pending_limit.h"

namespace torch_xla_lite::runtime {

bool PendingLimit::IsCut() {
  if (!cuts_.contains(last_ops_)) {
    // The first cut waits for nothing.
    if (!cuts_.empty() && count_ < patience_) return false;
    patience_ = has_new_ ? 2 * limit_ : 2 * patience_;
    if (cuts_.size() == kMostCuts) cuts_.clear();
    cuts_.insert(last_ops_);
  }
  has_new_ = false;
  return true;
}

}  // namespace torch_xla_lite::runtime
