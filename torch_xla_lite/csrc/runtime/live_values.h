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
// Everything here is guarded by the record lock (runtime/runtime.h).

#ifndef TORCH_XLA_LITE_CSRC_RUNTIME_LIVE_VALUES_H_
#define TORCH_XLA_LITE_CSRC_RUNTIME_LIVE_VALUES_H_

#include <vector>

#include "torch_xla_lite/csrc/ir/node.h"

namespace torch_xla_lite::runtime {

class LiveValue {
 public:
  LiveValue() = default;
  LiveValue(const LiveValue&) = delete;
  LiveValue& operator=(const LiveValue&) = delete;
  ~LiveValue() { Unlink(); }

  const ir::Value& value() const { return value_; }
  // The last leaf that was here, whose memory a new value may reuse. It may have been freed.
  const ir::Node* last_leaf() const { return last_leaf_; }
  // Where that leaf was, or what was said since: a value that is written here stays there.
  ir::Placement placement() const { return placement_; }
  void KeepAt(ir::Placement placement) { placement_ = placement; }
  // The zeros (ir/signature.h) that were here first, if nothing was computed since: the state of an
  // optimizer, for example, in its first step.
  const ir::Ref<ir::Node>& initial_zeros() const { return initial_zeros_; }
  // If they have become a leaf, the place continues as if it had held that leaf.
  void TakeInitialZeros();
  // Whether the calling thread wrote it last, or a thread that has ended since.
  bool IsOfThisThread() const;
  // Returns the old value, so that the caller can release it after unlocking.
  ir::Value Set(ir::Value value);
  // Removes it from the list of pending values: its value exists, or cannot be computed.
  void Unlink();

 private:
  friend std::vector<LiveValue*> PendingValues();

  void LinkLast();
  void HoldLeaf(const ir::Node* leaf, const ir::Buffer& buffer);

  ir::Value value_;
  const ir::Node* last_leaf_ = nullptr;
  ir::Placement placement_ = ir::kAnywhere;
  ir::Ref<ir::Node> initial_zeros_;
  LiveValue* previous_ = nullptr;
  LiveValue* next_ = nullptr;
  uint32_t thread_ = 0;
  bool is_linked_ = false;
};

// The live values that are pending, in the order of their last write.
std::vector<LiveValue*> PendingValues();

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_LIVE_VALUES_H_
