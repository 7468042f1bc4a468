#include "torch_xla_lite/csrc/ffi/threads.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

namespace torch_xla_lite::ffi {
namespace {

using SetThreads = void (*)(int);

// omp_set_num_threads of the OpenMP runtime that torch has loaded. It holds for the calling thread;
// at::set_num_threads would change all threads. The symbol is looked up at run time because torch
// ships its own copy of OpenMP: linking to the library would load a second one.
SetThreads OpenMpSetThreads() {
  static const auto found =
      reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  return found;
}

}  // namespace

SerialBelow::SerialBelow(size_t bytes) {
  if (bytes >= kSerialBytes) return;
  // The first call of this function on a thread applies torch.set_num_threads to the thread, so it
  // must precede OpenMpSetThreads.
  const int threads = at::get_num_threads();
  if (threads == 1 || OpenMpSetThreads() == nullptr) return;
  threads_before_ = threads;
  OpenMpSetThreads()(1);
}

SerialBelow::~SerialBelow() {
  if (threads_before_ != 0) OpenMpSetThreads()(threads_before_);
}

}  // namespace torch_xla_lite::ffi
