// RecordLock: a mutex for short critical sections that are rarely contended.
//
// Every recorded op locks it at least twice (when it is recorded, and when its tensor is
// destroyed). Without contention that costs an atomic exchange, a store and a check for waiting
// threads; std::mutex took a seventh of all recording time.
//
//   const std::lock_guard lock(runtime.record_lock());
//
// Not recursive. Waiting threads sleep.

#ifndef TORCH_XLA_LITE_CSRC_RUNTIME_RECORD_LOCK_H_
#define TORCH_XLA_LITE_CSRC_RUNTIME_RECORD_LOCK_H_

#include <atomic>

namespace torch_xla_lite::runtime {

class RecordLock {
 public:
  void lock() {
    while (held_.exchange(true, std::memory_order_acquire)) Sleep();
  }
  bool try_lock() { return !held_.exchange(true, std::memory_order_acquire); }
  void unlock() {
    held_.store(false, std::memory_order_release);
    Wake();
  }

 private:
  // Not inline: each shared object has its own table of waiting threads (in the C++ library), so a
  // thread that sleeps in one shared object would not be woken from another.
  void Sleep();
  void Wake();

  std::atomic<bool> held_ = false;
};

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_RECORD_LOCK_H_
