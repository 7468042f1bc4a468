// The record lock: guards nodes, and the values of tensors.
//
// Every recorded op locks it at least twice (when it is recorded, and when its tensor is
// destroyed). Without contention that costs an atomic exchange, a store and a check for waiting
// threads; std::mutex took a seventh of all recording time.
//
//   const runtime::RecordScope scope;                                // runtime/runtime.h
//   ir::Value Read() LITE_REQUIRES(ir::record_lock);                 // thread_annotations.h
//
// Not recursive. Waiting threads sleep.

#ifndef TORCH_XLA_LITE_CSRC_IR_RECORD_LOCK_H_
#define TORCH_XLA_LITE_CSRC_IR_RECORD_LOCK_H_

#include <atomic>

#include "torch_xla_lite/csrc/ir/thread_annotations.h"

namespace torch_xla_lite::ir {

class LITE_CAPABILITY("record lock") RecordLock {
 public:
  void lock() LITE_ACQUIRE() {
    while (held_.exchange(true, std::memory_order_acquire)) Sleep();
  }
  void unlock() LITE_RELEASE() {
    held_.store(false, std::memory_order_release);
    Wake();
  }
  // Tells clang so, in a function that another one calls for a caller that holds the lock.
  void AssertHeld() const LITE_ASSERT_CAPABILITY() {}

 private:
  // Not inline: each shared object has its own table of waiting threads (in the C++ library), so a
  // thread that sleeps in one shared object would not be woken from another.
  void Sleep();
  void Wake();

  std::atomic<bool> held_ = false;
};

extern RecordLock record_lock;

}  // namespace torch_xla_lite::ir

#endif  // TORCH_XLA_LITE_CSRC_IR_RECORD_LOCK_H_
