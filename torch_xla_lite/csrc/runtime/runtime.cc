#include "torch_xla_lite/csrc/runtime/runtime.h"

#include <exception>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/ir/graph.h"

namespace torch_xla_lite::runtime {

Runtime& Runtime::Get() {
  // Never destroyed: tensors in static storage may outlive every other static object.
  static auto* runtime = new Runtime;
  return *runtime;
}

std::unique_lock<std::mutex> Runtime::LockSync() {
  if (!sync_lock_.try_lock()) executor_->Lock(sync_lock_);
  return {sync_lock_, std::adopt_lock};
}

void Runtime::Sync() {
  const auto sync_lock = LockSync();
  try {
    Run(nullptr);
  } catch (...) {
    RunOneByOne(/*rethrow=*/true);
  }
}

void Runtime::Synchronize() {
  Sync();
  executor_->AwaitAll();
}

ir::Ref<ir::Buffer> Runtime::Materialize(const ir::Value& value) {
  const auto buffer = [&] {
    const std::lock_guard lock(record_lock_);
    return ir::Ref<ir::Buffer>::Share(value.buffer());
  };
  if (auto existing = buffer()) return existing;
  const auto sync_lock = LockSync();
  if (auto existing = buffer()) return existing;  // Computed by another thread's sync.
  try {
    Run(&value);
  } catch (...) {
    RunOneByOne(/*rethrow=*/false);
    // Without what other threads have recorded since, which may fail too.
    std::unique_lock lock(record_lock_);
    if (value.buffer() == nullptr) RunRoots({&value}, {}, lock);
  }
  return buffer();
}

// Computes all pending live values, and `value` when it is given.
void Runtime::Run(const ir::Value* value) {
  std::vector<const ir::Value*> roots;
  std::vector<const ir::Node*> replaced;
  std::unique_lock lock(record_lock_);
  const std::vector<LiveValue*> pending = PendingValues();
  for (const LiveValue* place : pending) {
    roots.push_back(&place->value());
    replaced.push_back(place->last_leaf());
  }
  if (value != nullptr && value->buffer() == nullptr) {
    roots.push_back(value);
    replaced.push_back(nullptr);
  }
  RunRoots(roots, replaced, lock);
}

// A live value that fails is removed from the pending values, so that it does not fail the next
// sync, too; reading it raises the error again.
void Runtime::RunOneByOne(bool rethrow) {
  std::exception_ptr error;
  for (;;) {
    std::unique_lock lock(record_lock_);
    const std::vector<LiveValue*> pending = PendingValues();
    if (pending.empty()) break;
    const ir::Value value = pending.front()->value();
    pending.front()->Unlink();
    if (value.buffer() != nullptr) continue;
    try {
      RunRoots({&value}, {}, lock);
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  }
  if (rethrow && error) std::rethrow_exception(error);
}

// Enters and leaves with the record lock held, or leaves by an exception with it released.
void Runtime::RunRoots(const std::vector<const ir::Value*>& roots,
                       const std::vector<const ir::Node*>& replaced,
                       std::unique_lock<RecordLock>& lock) {
  if (roots.empty()) return;
  ir::Graph graph = ir::Linearize(roots, replaced);
  lock.unlock();
  const ir::Ref<Executable> executable = FindOrCompile(graph);
  auto results = executor_->Execute(*executable, graph);
  ++counters_.executions;
  lock.lock();
  ir::Commit(graph, std::move(results));
  for (LiveValue* place : PendingValues()) {
    const ir::Value& value = place->value();
    if (value.buffer() == nullptr) continue;
    // Each result gets its own leaf, so that it can be donated separately.
    place->Set({ir::Node::Leaf(value.shape(), ir::Ref<ir::Buffer>::Share(value.buffer())), 0});
  }
}

ir::Ref<Executable> Runtime::FindOrCompile(const ir::Graph& graph) {
  if (auto executable = cache_.Find(graph.key)) {
    ++counters_.cache_hits;
    return executable;
  }
  auto executable = executor_->Compile(graph);
  ++counters_.compiles;
  cache_.Insert(graph.key, executable);
  return executable;
}

void Runtime::ClearCache() {
  const auto sync_lock = LockSync();
  cache_.Clear();
}

}  // namespace torch_xla_lite::runtime
