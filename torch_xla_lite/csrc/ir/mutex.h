// A std::mutex whose use clang checks (thread_annotations.h).
//
//   Mutex mutex;
//   const MutexLock lock(&mutex);

#ifndef TORCH_XLA_LITE_CSRC_IR_MUTEX_H_
#define TORCH_XLA_LITE_CSRC_IR_MUTEX_H_

#include <mutex>

#include "torch_xla_lite/csrc/ir/thread_annotations.h"

namespace torch_xla_lite::ir {

class LITE_CAPABILITY("mutex") Mutex {
 public:
  void lock() LITE_ACQUIRE() { mutex_.lock(); }
  bool try_lock() LITE_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() LITE_RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class LITE_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) LITE_ACQUIRE(mutex) : mutex_(*mutex) { mutex_.lock(); }
  ~MutexLock() LITE_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace torch_xla_lite::ir

#endif  // TORCH_XLA_LITE_CSRC_IR_MUTEX_H_
