#include "torch_xla_lite/csrc/ir/record_lock.h"

namespace torch_xla_lite::ir {

constinit RecordLock record_lock;

void RecordLock::Sleep() { held_.wait(true, std::memory_order_relaxed); }

void RecordLock::Wake() { held_.notify_one(); }

}  // namespace torch_xla_lite::ir
