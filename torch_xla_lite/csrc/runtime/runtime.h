// The runtime: compiles and runs recorded graphs when a value is needed.
//
// A sync computes all pending live values of a thread, not only the requested one, as one graph: a
// training step is then one executable, and nothing is computed twice. Executables are cached by
// the exact key of the graph. A graph that was never met before may be interpreted instead: most
// that a program runs once never come back.
//
//   Runtime& runtime = Runtime::Get();
//   runtime.SetExecutor(&executor);
//   runtime.Materialize(value);      // the buffer of a value, which is computed if it is pending
//   runtime.Sync();                  // all pending live values of this thread
//
// A program that reads nothing is cut into graphs all the same: where an optimizer's step ends
// (graph_cuts.py calls Sync) and where more than a number of ops are pending (PendingLimit).
//
// Two locks. The record lock guards nodes and live values; it is held for well under a microsecond,
// and never while Python's lock is taken. The sync lock is held for a whole sync, so that no two
// threads run the same nodes; it is taken before the record lock and before Python's.

#ifndef TORCH_XLA_LITE_CSRC_RUNTIME_RUNTIME_H_
#define TORCH_XLA_LITE_CSRC_RUNTIME_RUNTIME_H_

#include <atomic>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/runtime/executable_cache.h"
#include "torch_xla_lite/csrc/runtime/executor.h"
#include "torch_xla_lite/csrc/runtime/live_values.h"
#include "torch_xla_lite/csrc/runtime/pending_limit.h"
#include "torch_xla_lite/csrc/runtime/record_lock.h"
#include "torch_xla_lite/csrc/runtime/tiering.h"

namespace torch_xla_lite::runtime {

struct Counters {
  std::atomic<uint64_t> recorded_ops = 0;
  std::atomic<uint64_t> compiles = 0;
  std::atomic<uint64_t> loads = 0;
  std::atomic<uint64_t> executions = 0;
  std::atomic<uint64_t> interpretations = 0;
  std::atomic<uint64_t> cache_hits = 0;
};

// When a graph without an executable is compiled.
enum class CompileWhen {
  // At once: the first time that it runs.
  kFirst,
  // When it comes back (tiering.h); until then it is interpreted. Counts decide, not a clock, so
  // that a program gives the same bits in each run.
  kRepeated,
  // As kRepeated, but compiled by another thread; until then the graph is interpreted. How often
  // depends on timing.
  kBackground,
};

class RecordScope;

class Runtime {
 public:
  static Runtime& Get();

  // Guards nodes and live values.
  RecordLock& record_lock() { return record_lock_; }
  Counters& counters() { return counters_; }
  void CountCompiled(const Executable& executable) {
    ++(executable.is_loaded() ? counters_.loads : counters_.compiles);
  }

  void SetExecutor(Executor* executor) { executor_ = executor; }
  Executor& executor() { return *executor_; }

  // Computes all pending live values of this thread. When an op fails, all values that do not need
  // it are computed as one graph; then the error is thrown. After an interrupt or for lack of
  // memory all values stay as they were, and the error is thrown at once. After an error that names
  // no op and is no interrupt, the values that it may come from are computed only when they are
  // read or needed, and nothing else is computed then.
  void Sync();
  // Computes the pending live values of all threads, and waits until the device is idle.
  void Synchronize();
  // Like Sync, and computes the value; of ops that fail, throws only the error of one that the
  // value needs.
  ir::Ref<ir::Buffer> Materialize(const ir::Value& value);

  void set_compile_when(CompileWhen value) { compile_when_ = value; }

  // How many pending ops of a thread start a graph that nothing else has started; 0: no limit.
  void set_most_pending(size_t value) { most_pending_ = value; }
  // That of the calling thread: what other threads run is not what this one has recorded.
  PendingLimit& pending_limit();
  // Starts what this thread has recorded, because it is at the limit. An op that fails is reported
  // when its value is read.
  void StartPending();
  void ClearCache();
  // The graph that Sync would run. It is valid until another one is made.
  ir::Graph PendingGraph();

 private:
  // More than the distinct graphs of a typical program; an executable takes some hundred kB.
  static constexpr size_t kCacheCapacity = 1024;
  static constexpr size_t kCheckMappingsAfter = 4096;  // Words of keys.

  Runtime();

  class SyncScope;
  using Roots = std::vector<ir::Root>;
  using Calls = std::vector<ir::Ref<ir::Node>>;
  // What a sync computes.
  struct Request {
    const ir::Value* value = nullptr;  // Besides the live values; may be nullptr.
    bool of_all_threads = false;
  };

  std::exception_ptr RunPending(const Request& request);
  Roots PendingRoots(const Request& request, const Calls& failed);
  void FindSuspects(const Request& request);
  Calls FindFailed(const std::string& op, const Request& request, const Calls& failed);
  void UploadInitialZeros(RecordScope& scope);
  void Run(const Roots& roots, RecordScope& scope, bool may_interpret = true);
  std::vector<ir::Ref<ir::Buffer>> Compute(ir::Graph* graph, bool may_interpret);
  ir::Ref<Executable> Find(ir::Graph* graph);
  bool IsInterpretedNow(const ir::Graph& graph);
  void TakeCompiled();
  void Insert(const std::vector<uint64_t>& key, ir::Ref<Executable> executable);

  RecordLock record_lock_;
  std::mutex sync_lock_;
  std::atomic<std::thread::id> sync_owner_;
  ExecutableCache cache_;
  size_t unchecked_words_ = 0;
  bool has_suspects_ = false;  // Whether pending calls may be suspect.
  std::atomic<CompileWhen> compile_when_ = CompileWhen::kFirst;
  Tiering tiering_;
  // In the background, by the key of the graph. Nothing if it failed.
  std::map<std::vector<uint64_t>, ir::Ref<Compilation>> compilations_;
  Executor* executor_ = nullptr;
  Counters counters_;
  std::atomic<size_t> most_pending_ = 0;
};

// Holds the record lock. Values that are replaced meanwhile are freed at the end of the scope,
// after the lock is released.
class RecordScope {
 public:
  RecordScope() : lock_(Runtime::Get().record_lock()) {}

  void Unlock() { lock_.unlock(); }
  void Lock() { lock_.lock(); }

 private:
  ir::DestructionScope destruction_;  // Ends after the lock.
  std::unique_lock<RecordLock> lock_;
};

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_RUNTIME_H_
