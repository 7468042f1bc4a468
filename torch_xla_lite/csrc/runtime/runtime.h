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
// Locks are taken in this order: the sync lock, Python's, the record lock, and last the small ones
// that are held for a few instructions. The sync lock is held for a whole sync, so that no two
// threads run the same nodes. The record lock guards nodes and live values: it is held while an op
// is recorded, while a graph is made of what is pending, and while its results are stored. Below it
// neither Python nor a kernel runs, and no value is freed (RecordScope).

#ifndef TORCH_XLA_LITE_CSRC_RUNTIME_RUNTIME_H_
#define TORCH_XLA_LITE_CSRC_RUNTIME_RUNTIME_H_

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/ir/mutex.h"
#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/ir/record_lock.h"
#include "torch_xla_lite/csrc/ir/thread_annotations.h"
#include "torch_xla_lite/csrc/runtime/counters.h"
#include "torch_xla_lite/csrc/runtime/tiering.h"

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
struct FoundGraph;
class GraphRunner;
class PendingLimit;

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

  Counters& counters() { return counters_; }

  void SetExecutor(Executor* executor) { executor_ = executor; }
  Executor& executor() { return *executor_; }

  // Computes all pending live values of this thread. When a call fails, all values that do not need
  // it are computed as one graph; then the error is thrown. After an interrupt all values stay as
  // they were. After an error that names no call, such as lack of memory, each of them is computed
  // alone, when it is read or needed.
  void Sync();
  // Computes the pending live values of all threads, and waits until the device is idle.
  void Synchronize();
  // Like Sync, and computes the value; throws an error only if the value depends on what failed.
  ir::Ref<ir::Buffer> Materialize(const ir::Value& value);

  void set_compile_when(CompileWhen value);
  // What graphs are expected to cost.
  CostModel& costs();
  // What has run since ClearCache, by that model, in microseconds: interpreted, and compiled.
  std::pair<double, double> costs_so_far() const;
  // Of each graph that is kept, by the hash of its structure (tiering.h).
  std::vector<std::pair<uint64_t, Tiering::Account>> CostAccounts();

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
  bool RefusesReads() const;
  // Whether a thread is in a sync; in a forked process, also one that was not forked.
  bool IsSyncing();
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
  struct Outcome {
    std::exception_ptr error;  // The first one, if any.
    bool names_calls = false;
  };

  void SetAside(const Request& request) LITE_REQUIRES(sync_lock_, ir::record_lock);
  Outcome RunPending(const Request& request) LITE_REQUIRES(sync_lock_);
  Roots PendingRoots(const Request& request, const Calls& failed)
      LITE_REQUIRES(sync_lock_, ir::record_lock);
  void HoldComputed() LITE_REQUIRES(ir::record_lock);
  // These release the record lock meanwhile.
  void UploadInitialZeros() LITE_REQUIRES(sync_lock_, ir::record_lock);
  void Run(const Roots& roots, bool may_interpret = true)
      LITE_REQUIRES(sync_lock_, ir::record_lock);
  void RunWhole(ir::Graph* graph, FoundGraph found, bool may_interpret)
      LITE_REQUIRES(sync_lock_, ir::record_lock);

  ir::Mutex sync_lock_;
  Executor* executor_ = nullptr;
  Counters counters_;
  const std::unique_ptr<GraphRunner> runner_;
  std::atomic<size_t> most_pending_ = 0;
};

// Holds the record lock. Values that are replaced meanwhile are freed at the end of the scope,
// after the lock is released.
class LITE_SCOPED_CAPABILITY RecordScope {
 public:
  RecordScope() LITE_ACQUIRE(ir::record_lock) { ir::record_lock.lock(); }
  ~RecordScope() LITE_RELEASE() { ir::record_lock.unlock(); }
  RecordScope(const RecordScope&) = delete;
  RecordScope& operator=(const RecordScope&) = delete;

 private:
  ir::DestructionScope destruction_;  // Ends after the lock is released.
};

// Releases the record lock, which its function holds, until the end of the scope. What was read
// before may have changed then.
class LITE_SCOPED_CAPABILITY RecordPause {
 public:
  RecordPause() LITE_RELEASE(ir::record_lock) { ir::record_lock.unlock(); }
  // clang calls this a release, too: of what the constructor has done.
  ~RecordPause() LITE_RELEASE() { ir::record_lock.lock(); }
  RecordPause(const RecordPause&) = delete;
  RecordPause& operator=(const RecordPause&) = delete;
};

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_RUNTIME_H_
