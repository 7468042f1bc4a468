// The record lock: a mutex for sections of some hundred nanoseconds that are hardly ever contended.
//
// Every recorded op takes it twice (once to be recorded, once when its tensor dies). Free, it costs
// one atomic exchange and one store; std::mutex took a seventh of all recording time.
//
//   const std::lock_guard lock(runtime.record_lock());
//
// Not recursive. A thread that has to wait sleeps.

#ifndef TORCH_XLA_LITE_CSRC_RUNTIME_RECORD_LOCK_H_
#define TORCH_XLA_LITE_CSRC_RUNTIME_RECORD_LOCK_H_

#include <atomic>

namespace torch_xla_lite::runtime {

class RecordLock {
 public:
  void lock() {
    while (held_.exchange(true, std::memory_order_acquire)) Sleep();
  }
  void unlock() {
    held_.store(false, std::memory_order_release);
    Wake();
  }

 private:
  // Not inline: the C++ library counts the threads that wait in a table that each shared object
  // has for itself, so a thread that slept in one would not be woken from another.
  void Sleep();
  void Wake();

  std::atomic<bool> held_ = false;
};

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_RECORD_LOCK_H_
