#include "torch_xla_lite/csrc/ffi/threads.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

namespace torch_xla_lite::ffi {
namespace {

// Functions of the libraries that torch has loaded, which hold for the calling thread;
// at::set_num_threads would change all threads. They are looked up at run time because torch ships
// its own copies: linking to a library would load a second one.
template <typename Function>
Function Find(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

void OpenMpSetThreads(int threads) {
  static const auto set = Find<void (*)(int)>("omp_set_num_threads");
  if (set != nullptr) set(threads);
}

// MKL has a number of its own once torch.set_num_threads was called; 0 takes OpenMP's. Returns the
// number before. Builds of torch without MKL have no such function.
int MklSetThreads(int threads) {
  static const auto set = Find<int (*)(int)>("MKL_Set_Num_Threads_Local");
  return set == nullptr ? 0 : set(threads);
}

}  // namespace

SerialBelow::SerialBelow(size_t bytes) {
  if (bytes >= kSerialBytes) return;
  // The first call of this function on a thread applies torch.set_num_threads to the thread, so it
  // must precede those below.
  threads_before_ = at::get_num_threads();
  if (threads_before_ == 1) return;
  OpenMpSetThreads(1);
  mkl_before_ = MklSetThreads(1);
}

SerialBelow::~SerialBelow() {
  if (threads_before_ == 1) return;
  OpenMpSetThreads(threads_before_);
  MklSetThreads(mkl_before_);
}

}  // namespace torch_xla_lite::ffi
