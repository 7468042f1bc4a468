#include "torch_xla_lite/csrc/runtime/runtime.h"

#include <pthread.h>

#include <array>
#include <stdexcept>
#include <utility>

#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/runtime/executor.h"
#include "torch_xla_lite/csrc/runtime/failures.h"
#include "torch_xla_lite/csrc/runtime/graph_runner.h"
#include "torch_xla_lite/csrc/runtime/live_values.h"
#include "torch_xla_lite/csrc/runtime/pending_limit.h"
#include "torch_xla_lite/csrc/runtime/pieces.h"

namespace torch_xla_lite::runtime {
namespace {

// Whether this thread holds the sync lock.
thread_local bool is_syncing = false;

// Zeros like a parameter, such as the state of an optimizer, are where that is.
ir::Placement PlacementOfZeros(const ir::Node& zeros) LITE_REQUIRES(ir::record_lock) {
  const auto operands = zeros.operands();
  // It has dropped them if it was computed before.
  const bool are_like = !operands.empty() && operands[0] && operands[0].buffer() != nullptr &&
                        operands[0].shape()->dims() == zeros.signature().outputs[0]->dims();
  return are_like ? operands[0].buffer()->placement() : ir::kOneDevice;
}

// Which calls of a graph failed.
struct CallFailure {
  std::vector<ir::Ref<ir::Node>> calls;
  std::exception_ptr error;
};

// See RefuseReads.
thread_local bool refuses_reads = false;
thread_local bool has_refused = false;

void CheckReadsAllowed() {
  if (!refuses_reads) return;
  has_refused = true;
  throw RefusedRead();
}

}  // namespace

// Holds the sync lock.
class LITE_SCOPED_CAPABILITY Runtime::SyncScope {
 public:
  explicit SyncScope(Runtime* runtime) LITE_ACQUIRE(runtime->sync_lock_) : runtime_(*runtime) {
    // Checked first: in a forked process, the thread that held the lock does not exist.
    runtime_.executor_->CheckUsable();
    if (is_syncing || runtime_.executor_->IsInKernel()) {
      throw std::runtime_error(
          "a tensor on jax that is not computed yet was read while a graph is compiled or run: in "
          "a lowering, in a kernel, or in a __del__ that was called meanwhile.\n"
          "Pass the tensor to the op as an argument, or compute it before:  "
          "torch_xla_lite.sync()");
    }
    if (!runtime_.sync_lock_.try_lock()) runtime_.executor_->Lock(runtime_.sync_lock_);
    is_syncing = true;
  }
  ~SyncScope() LITE_RELEASE() {
    is_syncing = false;
    runtime_.sync_lock_.unlock();
  }
  SyncScope(const SyncScope&) = delete;
  SyncScope& operator=(const SyncScope&) = delete;

 private:
  Runtime& runtime_;
};

Runtime::Runtime() : runner_(std::make_unique<GraphRunner>(&counters_)) {
  // A process that is forked while another thread records must be able to drop its tensors.
  const auto lock = []() LITE_ACQUIRE(ir::record_lock) { ir::record_lock.lock(); };
  const auto unlock = []() LITE_RELEASE(ir::record_lock) { ir::record_lock.unlock(); };
  pthread_atfork(lock, unlock, unlock);
}

Runtime& Runtime::Get() {
  // Never destroyed: tensors in static storage may outlive every other static object.
  static auto* runtime = new Runtime;
  return *runtime;
}

void Runtime::set_compile_when(CompileWhen value) { runner_->set_compile_when(value); }

void Runtime::Sync() {
  CheckReadsAllowed();
  const SyncScope sync(this);
  if (const auto error = RunPending({}).error) std::rethrow_exception(error);
}

void Runtime::Synchronize() {
  CheckReadsAllowed();
  {
    const SyncScope sync(this);
    if (const auto error = RunPending({.of_all_threads = true}).error)
      std::rethrow_exception(error);
  }
  executor_->AwaitAll();
}

PendingLimit& Runtime::pending_limit() {
  thread_local PendingLimit own;
  const size_t limit = most_pending_.load(std::memory_order_relaxed);
  if (own.limit() != limit) own.set_limit(limit);
  return own;
}

void Runtime::StartPending() {
  // An op that is recorded while a graph is compiled or run waits for the next sync.
  if (is_syncing || refuses_reads || executor_->IsInKernel()) return;
  const SyncScope sync(this);
  RunPending({});
}

ir::Ref<ir::Buffer> Runtime::Materialize(const ir::Value& value) {
  const auto buffer = [&] {
    const RecordScope scope;
    return ir::Ref<ir::Buffer>::Share(value.buffer());
  };
  if (auto existing = buffer()) return existing;
  CheckReadsAllowed();
  const SyncScope sync(this);
  if (auto existing = buffer()) return existing;  // Another thread's sync was faster.
  const Outcome outcome = RunPending({.value = &value});
  if (auto computed = buffer()) return computed;
  try {
    const RecordScope scope;
    // What failed when a graph was compiled or run would not fail in the interpreter.
    Run({ir::Root{&value}}, /*may_interpret=*/!outcome.names_calls);
  } catch (const CallFailure& failure) {
    std::rethrow_exception(failure.error);
  }
  return buffer();
}

// Computes all values of the request but those that need a call that fails. Throws interrupts only.
Runtime::Outcome Runtime::RunPending(const Request& request) {
  Outcome outcome;
  Calls failed;
  for (;;) {
    try {
      const RecordScope scope;
      pending_limit().Reset();
      UploadInitialZeros();
      Run(PendingRoots(request, failed));
      return outcome;
    } catch (const CallFailure& failure) {
      if (!outcome.error) outcome = {.error = failure.error, .names_calls = true};
      failed.insert(failed.end(), failure.calls.begin(), failure.calls.end());
    } catch (const std::exception& other) {
      const bool is_interrupt = executor_->IsInterrupt(other);
      const RecordScope scope;
      HoldComputed();
      if (is_interrupt) throw;
      SetAside(request);
      return {.error = std::current_exception()};
    }
  }
}

// Removes what a request computes from the list of pending values, so that it cannot fail the next
// sync: each value is computed when it is read or needed.
void Runtime::SetAside(const Request& request) {
  for (LiveValue* place : PendingValues()) {
    if (request.of_all_threads || place->IsOfThisThread()) place->Unlink();
  }
}

// What a request computes. Values that need a failed call are removed from it, and set aside.
Runtime::Roots Runtime::PendingRoots(const Request& request, const Calls& failed) {
  const std::vector<LiveValue*> pending = PendingValues();
  Roots all;
  for (const LiveValue* place : pending) {
    const bool is_requested = request.of_all_threads || place->IsOfThisThread();
    all.push_back({&place->value(), place->last_leaf(), place->placement(), !is_requested});
  }
  const ir::Value* value = request.value;
  if (value != nullptr && value->buffer() == nullptr) all.push_back({value});
  if (failed.empty()) return all;
  const NodeSet doomed = NodesThatNeed(failed, all);
  Roots roots;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!doomed.contains(all[i].value->node.get())) {
      roots.push_back(all[i]);
    } else if (i < pending.size()) {
      pending[i]->Unlink();
    }
  }
  return roots;
}

// Turns the zeros that values began as into leaves, which they are in all later steps: otherwise
// the first step of an optimizer would be a graph of its own.
void Runtime::UploadInitialZeros() {
  Calls zeros;
  for (LiveValue* place : PendingValues()) {
    if (place->initial_zeros() && place->IsOfThisThread()) zeros.push_back(place->initial_zeros());
  }
  if (zeros.empty()) return;
  std::vector<ir::Placement> placements;
  for (const auto& node : zeros) placements.push_back(PlacementOfZeros(*node));
  std::vector<ir::Ref<ir::Buffer>> buffers;
  {
    const RecordPause pause;
    for (size_t i = 0; i < zeros.size(); ++i) {
      const ir::Shape* const shape = zeros[i]->signature().outputs[0];
      buffers.push_back(executor_->Zeros(shape));
      if (placements[i] != ir::kOneDevice) {
        buffers[i] = executor_->Placed(shape, std::move(buffers[i]), placements[i]);
      }
    }
  }
  for (size_t i = 0; i < zeros.size(); ++i) {
    zeros[i]->SetBuffer(0, std::move(buffers[i]));
    zeros[i]->DropOperands();
  }
  zeros.clear();
  for (LiveValue* place : PendingValues()) place->TakeInitialZeros();
  HoldComputed();
}

// The values of the list that exist are leaves from now on. Places that share one get a leaf each,
// so that it can be donated separately.
void Runtime::HoldComputed() {
  for (LiveValue* place : PendingValues()) {
    const ir::Value& value = place->value();
    if (value.buffer() == nullptr) continue;
    place->Set({ir::Node::Leaf(value.shape(), ir::Ref<ir::Buffer>::Share(value.buffer())), 0});
  }
}

void Runtime::Run(const Roots& roots, bool may_interpret) {
  ir::Graph graph = ir::Linearize(roots);
  if (graph.roots.empty()) return;
  FoundGraph found = runner_->Find(graph);
  std::vector<uint8_t> pieces;
  if (!found && may_interpret && graph.mesh == 0) pieces = runner_->Divide(graph);
  if (pieces.empty()) return RunWhole(&graph, std::move(found), may_interpret);
  std::array<PieceRoots, 3> of_pieces = RootsOfPieces(graph, pieces, roots);
  graph = {};  // It refers to leaves, which could not be donated.
  for (PieceRoots& piece : of_pieces) {
    if (piece.roots.empty()) continue;
    ir::Graph part = ir::Linearize(piece.roots);
    found = runner_->Find(part);
    RunWhole(&part, std::move(found), may_interpret);
    piece = {};
  }
}

void Runtime::RunWhole(ir::Graph* graph, FoundGraph found, bool may_interpret) {
  std::vector<ir::Ref<ir::Buffer>> results;
  try {
    const RecordPause pause;
    results = runner_->Run(graph, std::move(found), *executor_, may_interpret);
  } catch (const StepFailure& failure) {
    HoldComputed();
    CallFailure of_calls{{}, failure.error};
    for (const uint32_t step : failure.steps) {
      of_calls.calls.push_back(ir::Ref<ir::Node>::Share(graph->nodes.at(step)));
    }
    throw of_calls;
  }
  ir::Commit(*graph, std::move(results));
  HoldComputed();
}

ir::Graph Runtime::PendingGraph() {
  const SyncScope sync(this);
  const RecordScope scope;
  return ir::Linearize(PendingRoots({}, {}));
}

bool Runtime::RefuseReads(bool refuses) {
  refuses_reads = refuses;
  return std::exchange(has_refused, false);
}

bool Runtime::RefusesReads() const { return refuses_reads; }

bool Runtime::IsSyncing() {
  if (!sync_lock_.try_lock()) return true;
  sync_lock_.unlock();
  return false;
}

CostModel& Runtime::costs() { return runner_->costs(); }

std::pair<double, double> Runtime::costs_so_far() const {
  const Tiering& tiering = runner_->tiering();
  return {tiering.interpreted(), tiering.compiled()};
}

std::vector<std::pair<uint64_t, Tiering::Account>> Runtime::CostAccounts() {
  const SyncScope sync(this);
  return runner_->tiering().Accounts();
}

void Runtime::ClearCache() {
  const SyncScope sync(this);
  runner_->Clear();
  executor_->ClearCache();
}

}  // namespace torch_xla_lite::runtime
