// Live values: variables for values that the program can still read.
//
// The value of a tensor changes when it is written to; a LiveValue is the variable that holds the
// current one. Those whose value is pending are linked in the order of their last write, so that a
// sync finds what to compute, and in the same order for the same program: the order is part of the
// graph's key. Each belongs to the thread that wrote it last, so that a sync of one thread does not
// cut what another has recorded in half.
//
//   LiveValue place;
//   place.Set(value);        // pending: now in the list
//   PendingValues();         // {&place}
//
// Everything here is guarded by the record lock, but for the destruction of what is not linked.

#ifndef TORCH_XLA_LITE_CSRC_RUNTIME_LIVE_VALUES_H_
#define TORCH_XLA_LITE_CSRC_RUNTIME_LIVE_VALUES_H_

#include <vector>

#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/ir/record_lock.h"
#include "torch_xla_lite/csrc/ir/thread_annotations.h"

namespace torch_xla_lite::runtime {

class LiveValue {
 public:
  LiveValue() = default;
  LiveValue(const LiveValue&) = delete;
  LiveValue& operator=(const LiveValue&) = delete;
  // The lock is not needed for a value that is not linked: no other thread knows it.
  ~LiveValue() LITE_NO_THREAD_SAFETY_ANALYSIS { Unlink(); }

  const ir::Value& value() const LITE_REQUIRES(ir::record_lock) { return value_; }
  // The last leaf that was here, whose memory a new value may reuse. It may have been freed.
  const ir::Node* last_leaf() const LITE_REQUIRES(ir::record_lock) { return last_leaf_; }
  // Where that leaf was, or what was said since: a value that is written here stays there.
  ir::Placement placement() const LITE_REQUIRES(ir::record_lock) { return placement_; }
  void KeepAt(ir::Placement placement) LITE_REQUIRES(ir::record_lock) { placement_ = placement; }
  // The zeros (ir/signature.h) that were here first, if nothing was computed since: the state of an
  // optimizer, for example, in its first step.
  const ir::Ref<ir::Node>& initial_zeros() const LITE_REQUIRES(ir::record_lock) {
    return initial_zeros_;
  }
  // If they have become a leaf, the place continues as if it had held that leaf.
  void TakeInitialZeros() LITE_REQUIRES(ir::record_lock);
  // Whether the calling thread wrote it last, or a thread that has ended since.
  bool IsOfThisThread() const LITE_REQUIRES(ir::record_lock);
  // Returns the old value, so that the caller can release it after unlocking.
  ir::Value Set(ir::Value value) LITE_REQUIRES(ir::record_lock);
  // Removes it from the list of pending values: its value exists, or cannot be computed.
  void Unlink() LITE_REQUIRES(ir::record_lock);
  // Gives back the value that was overwritten after KeepOverwritten, if one was. Returns the one
  // that it had since, for release after unlocking.
  ir::Value Restore() LITE_REQUIRES(ir::record_lock);

 private:
  friend std::vector<LiveValue*> PendingValues() LITE_REQUIRES(ir::record_lock);

  void LinkLast() LITE_REQUIRES(ir::record_lock);
  void HoldLeaf(const ir::Node* leaf, const ir::Buffer& buffer) LITE_REQUIRES(ir::record_lock);

  ir::Value value_ LITE_GUARDED_BY(ir::record_lock);
  const ir::Node* last_leaf_ LITE_GUARDED_BY(ir::record_lock) = nullptr;
  ir::Placement placement_ LITE_GUARDED_BY(ir::record_lock) = ir::kAnywhere;
  ir::Ref<ir::Node> initial_zeros_ LITE_GUARDED_BY(ir::record_lock);
  ir::Value overwritten_ LITE_GUARDED_BY(ir::record_lock);
  LiveValue* previous_ LITE_GUARDED_BY(ir::record_lock) = nullptr;
  LiveValue* next_ LITE_GUARDED_BY(ir::record_lock) = nullptr;
  uint32_t thread_ LITE_GUARDED_BY(ir::record_lock) = 0;
  bool is_linked_ LITE_GUARDED_BY(ir::record_lock) = false;
};

// The live values that are pending, in the order of their last write.
std::vector<LiveValue*> PendingValues() LITE_REQUIRES(ir::record_lock);

// The last of them, or nullptr.
LiveValue* LastPending() LITE_REQUIRES(ir::record_lock);

// From now on the values that this thread overwrites are kept, but for those that it has recorded.
void KeepOverwritten();

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_LIVE_VALUES_H_
