// Defers Ctrl-C during its lifetime.
//
//   const DeferredInterrupts deferred;
//   run(); store();    // KeyboardInterrupt, if it came meanwhile, is raised afterwards.
//
// Python raises KeyboardInterrupt between any two instructions: for example after a graph has run,
// when donated arguments no longer exist, and before its results are stored.

#ifndef TORCH_XLA_LITE_CSRC_PYTHON_DEFERRED_INTERRUPTS_H_
#define TORCH_XLA_LITE_CSRC_PYTHON_DEFERRED_INTERRUPTS_H_

#include <signal.h>
#include <unistd.h>

#include <csignal>
#include <utility>

namespace torch_xla_lite::python {

class DeferredInterrupts {
 public:
  DeferredInterrupts() {
    // Python handles signals on the main thread only.
    if (getpid() != gettid()) return;
    struct sigaction remember = {};
    remember.sa_handler = [](int) { came = 1; };
    remember.sa_flags = SA_RESTART;
    is_active_ = sigaction(SIGINT, &remember, &before_) == 0;
  }
  ~DeferredInterrupts() {
    if (!is_active_) return;
    sigaction(SIGINT, &before_, nullptr);
    if (std::exchange(came, 0) != 0) raise(SIGINT);
  }
  DeferredInterrupts(const DeferredInterrupts&) = delete;
  DeferredInterrupts& operator=(const DeferredInterrupts&) = delete;

 private:
  static inline volatile std::sig_atomic_t came = 0;
  struct sigaction before_ = {};
  bool is_active_ = false;
};

}  // namespace torch_xla_lite::python

#endif  // TORCH_XLA_LITE_CSRC_PYTHON_DEFERRED_INTERRUPTS_H_
