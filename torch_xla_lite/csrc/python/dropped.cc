#include "torch_xla_lite/csrc/python/dropped.h"

#include <pthread.h>

#include <atomic>
#include <memory>
#include <utility>

namespace torch_xla_lite::python {
namespace {

// Whether another process may use the device. A call of getpid in each run of a graph costs more.
std::atomic<bool> is_forked = true;

// What was dropped and waits for Python's lock. A list without a lock of its own: objects die
// anywhere, also in a process that was forked while another thread dropped one.
struct Dropped {
  PyObject* object;
  Dropped* next;
};
std::atomic<Dropped*> dropped = nullptr;
std::atomic<bool> is_release_scheduled = false;

int ReleaseScheduled(void*) {
  ReleaseDropped();
  return 0;
}

}  // namespace

void Drop(PyObject* object) {
  auto* item = new Dropped{object, dropped.load()};
  while (!dropped.compare_exchange_weak(item->next, item)) continue;
  if (is_release_scheduled.exchange(true)) return;
  // Needs no lock of Python's. Not at its end: all memory goes then.
  if (!Py_IsInitialized() || Py_AddPendingCall(&ReleaseScheduled, nullptr) != 0) {
    is_release_scheduled = false;
  }
}

void ReleaseDropped() {
  is_release_scheduled = false;
  if (IsForked() || dropped.load(std::memory_order_relaxed) == nullptr) return;
  for (Dropped* first = dropped.exchange(nullptr); first != nullptr;) {
    const std::unique_ptr<Dropped> owned(std::exchange(first, first->next));
    Py_DECREF(owned->object);
  }
}

void UseInThisProcess() {
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { is_forked = true; });
  is_forked = false;
}

bool IsForked() { return is_forked.load(std::memory_order_relaxed); }

}  // namespace torch_xla_lite::python
