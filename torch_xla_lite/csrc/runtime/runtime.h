// The runtime: compiles and runs recorded graphs when a value is needed.
//
// A sync computes all pending live values of a thread, not only the requested one, as one graph: a
// training step is then one executable, and nothing is computed twice. Executables are cached by
// the exact key of the graph. A graph may be interpreted instead, until compiling it pays
// (tiering.h).
//
//   Runtime& runtime = Runtime::Get();
//   runtime.SetExecutor(&executor);
//   runtime.Materialize(value);      // the buffer of a value, which is computed if it is pending
//   runtime.Sync();                  // all pending live values of this thread
//
// A program that reads nothing is cut into graphs all the same: where an optimizer's step ends
// (graph_cuts.py calls Sync) and where more than a number of ops are pending (PendingLimit).
//
// Two locks. The record lock guards nodes and live values; it is the last to be taken, and nothing
// is called below it that takes Python's. The sync lock is held for a whole sync, so that no two
// threads run the same nodes; it is taken before the record lock and before Python's.

#ifndef TORCH_XLA_LITE_CSRC_RUNTIME_RUNTIME_H_
#define TORCH_XLA_LITE_CSRC_RUNTIME_RUNTIME_H_

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/runtime/counters.h"
#include "torch_xla_lite/csrc/runtime/record_lock.h"

namespace torch_xla_lite::ir {
struct Graph;
struct Root;
}  // namespace torch_xla_lite::ir

namespace torch_xla_lite::runtime {

// Declared only: the code that records ops includes this header, and an edit of the code that runs
// them should not compile it again.
enum class CompileWhen;
class CostModel;
class Executor;
class GraphRunner;
class PendingLimit;
class RecordScope;

// What a thread throws that refuses reads, when a value is needed that is not computed.
class RefusedRead : public std::runtime_error {
 public:
  // op: which needs the value; empty if it is read.
  explicit RefusedRead(const std::string& op = "")
      : std::runtime_error("graph break: " +
                           (op.empty() ? "a value is read" : op + " needs a value")) {}
};

class Runtime {
 public:
  static Runtime& Get();

  // Guards nodes and live values.
  RecordLock& record_lock() { return record_lock_; }
  Counters& counters() { return counters_; }

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

  void set_compile_when(CompileWhen value);
  // What graphs are expected to cost.
  CostModel& costs();

  // How many pending ops of a thread start a graph that nothing else has started; 0: no limit.
  void set_most_pending(size_t value) { most_pending_ = value; }
  // That of the calling thread: what other threads run is not what this one has recorded.
  PendingLimit& pending_limit();
  // Starts what this thread has recorded, because it is at the limit. An op that fails is reported
  // when its value is read.
  void StartPending();
  // Whether the calling thread throws RefusedRead, and starts no graph, where a value is needed.
  // Returns whether it has thrown that since this was set last.
  bool RefuseReads(bool refuses);
  void ClearCache();
  // The graph that Sync would run. It is valid until another one is made.
  ir::Graph PendingGraph();

 private:
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
  Calls FindFailed(const std::string& op, const Request& request, const Calls& failed);
  void UploadInitialZeros(RecordScope& scope);
  void Run(const Roots& roots, RecordScope& scope, bool may_interpret = true);

  RecordLock record_lock_;
  std::mutex sync_lock_;
  bool has_suspects_ = false;  // Whether pending calls may be suspect.
  Executor* executor_ = nullptr;
  Counters counters_;
  const std::unique_ptr<GraphRunner> runner_;
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
