#include "torch_xla_lite/csrc/runtime/live_values.h"

#include <unordered_set>
#include <utility>

#include "torch_xla_lite/csrc/ir/mutex.h"

namespace torch_xla_lite::runtime {
namespace {

LiveValue* first LITE_GUARDED_BY(ir::record_lock) = nullptr;
LiveValue* last LITE_GUARDED_BY(ir::record_lock) = nullptr;

// The threads that have written a value and have not ended. A thread's number is never used again.
class Threads {
 public:
  static Threads& Get() {
    static auto* threads = new Threads;  // Never destroyed: threads may end after static objects.
    return *threads;
  }

  uint32_t Begin() {
    const ir::MutexLock lock(&mutex_);
    running_.insert(++last_);
    return last_;
  }
  void End(uint32_t thread) {
    const ir::MutexLock lock(&mutex_);
    running_.erase(thread);
  }
  bool IsRunning(uint32_t thread) {
    const ir::MutexLock lock(&mutex_);
    return running_.contains(thread);
  }

 private:
  ir::Mutex mutex_;
  uint32_t last_ LITE_GUARDED_BY(mutex_) = 0;
  std::unordered_set<uint32_t> running_ LITE_GUARDED_BY(mutex_);
};

struct Thread {
  ~Thread() { Threads::Get().End(number); }
  const uint32_t number = Threads::Get().Begin();
};

thread_local bool keeps_overwritten = false;

uint32_t ThisThread() {
  thread_local const Thread thread;
  return thread.number;
}

}  // namespace

bool LiveValue::IsOfThisThread() const {
  return thread_ == ThisThread() || !Threads::Get().IsRunning(thread_);
}

ir::Value LiveValue::Set(ir::Value value) {
  if (!keeps_overwritten) {
    overwritten_ = {};
  } else if (!overwritten_ && value_ && (value_.buffer() != nullptr || !IsOfThisThread())) {
    overwritten_ = value_;
  }
  Unlink();
  std::swap(value_, value);
  if (!value_) return value;
  if (value_.buffer() == nullptr) {
    if (!value && value_.node->signature().is_zeros) initial_zeros_ = value_.node;
    LinkLast();
  } else {
    HoldLeaf(value_.node.get(), *value_.buffer());
  }
  return value;
}

void LiveValue::HoldLeaf(const ir::Node* leaf, const ir::Buffer& buffer) {
  last_leaf_ = leaf;
  placement_ = buffer.placement();
  initial_zeros_ = {};
}

void LiveValue::TakeInitialZeros() {
  if (!initial_zeros_ || initial_zeros_->buffer(0) == nullptr) return;
  HoldLeaf(initial_zeros_.get(), *initial_zeros_->buffer(0));
}

void LiveValue::LinkLast() {
  previous_ = last;
  (last == nullptr ? first : last->next_) = this;
  last = this;
  thread_ = ThisThread();
  is_linked_ = true;
}

void LiveValue::Unlink() {
  // Checks its own member and not the list: a value that is not linked may be destroyed without the
  // lock.
  if (!is_linked_) return;
  (previous_ == nullptr ? first : previous_->next_) = next_;
  (next_ == nullptr ? last : next_->previous_) = previous_;
  previous_ = next_ = nullptr;
  is_linked_ = false;
}

ir::Value LiveValue::Restore() {
  return overwritten_ ? Set(std::exchange(overwritten_, {})) : ir::Value();
}

LiveValue* LastPending() { return last; }

void KeepOverwritten() { keeps_overwritten = true; }

std::vector<LiveValue*> PendingValues() {
  std::vector<LiveValue*> pending;
  for (LiveValue* place = first; place != nullptr; place = place->next_) pending.push_back(place);
  return pending;
}

}  // namespace torch_xla_lite::runtime
