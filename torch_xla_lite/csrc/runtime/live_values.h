// Live values: the places that hold a value which the program can still ask for.
//
// What a tensor stands for changes when it is written to; a LiveValue is the place that stays. All
// places whose value is pending are linked in the order in which they were last written, so that a
// sync knows what has to be computed and, for the same program, always in the same order: the order
// is part of the graph's key.
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
  // The last leaf that was here: whose memory a new value may have. It may be gone by now.
  const ir::Node* last_leaf() const { return last_leaf_; }
  // Returns the value that was there, so that the caller can let go of it after unlocking.
  ir::Value Set(ir::Value value);
  // Takes the place out of the list of pending ones: its value exists, or cannot be computed.
  void Unlink();

 private:
  friend std::vector<LiveValue*> PendingValues();

  void LinkLast();

  ir::Value value_;
  const ir::Node* last_leaf_ = nullptr;
  LiveValue* previous_ = nullptr;
  LiveValue* next_ = nullptr;
  bool is_linked_ = false;
};

// Those whose value is pending, in the order of their last write.
std::vector<LiveValue*> PendingValues();

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_LIVE_VALUES_H_
