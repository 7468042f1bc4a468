// Executor: the runtime's interface to a compiler and a device.
//
// The runtime decides what runs and when; an Executor turns a graph's description into an
// executable, runs it on buffers, and moves data in and out. The implementation for users
// calls jax (csrc/python/executor.h); tests have others.
//
// All methods are called without the record lock and may throw. Compile, StartCompile, Load,
// Execute and Interpret are called below the sync lock (runtime.h), so never concurrently.
//
// A StepFailure says which steps of a graph failed: values that do not need them can be computed
// without them. Any other exception, an interrupt or lack of memory, concerns the whole graph.

#ifndef TORCH_XLA_LITE_CSRC_RUNTIME_EXECUTOR_H_
#define TORCH_XLA_LITE_CSRC_RUNTIME_EXECUTOR_H_

#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "torch_xla_lite/csrc/ir/mutex.h"
#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/ir/thread_annotations.h"
#include "torch_xla_lite/csrc/runtime/tiering.h"

namespace torch_xla_lite::ir {
struct Description;
struct Graph;
}  // namespace torch_xla_lite::ir

namespace torch_xla_lite::runtime {

class ExecutableCache;

class Executable : public ir::RefCounted {
 public:
  virtual ~Executable() = default;
  // Whether it was on disk, and nothing was compiled.
  virtual bool is_loaded() const { return false; }
};

// A compilation that runs in the background. Dropping it cancels it if it has not begun.
class Compilation : public ir::RefCounted {
 public:
  virtual ~Compilation() = default;
  virtual bool IsDone() = 0;
  // To be called when it is done. Nothing if it failed: who compiles the graph again meets the
  // error where the graph is needed.
  virtual ir::Ref<Executable> Result() = 0;
};

// What an executor keeps of a graph that it interprets again and again.
class Plan : public ir::RefCounted {
 public:
  virtual ~Plan() = default;
};

struct StepFailure {
  std::vector<uint32_t> steps;  // Calls, by their places in the graph's nodes.
  std::exception_ptr error;     // Of the first.
};

class Executor {
 public:
  virtual ~Executor() = default;

  // Throws where no graph can ever run: in a forked process.
  virtual void CheckUsable() const {}
  virtual bool IsInterrupt(const std::exception& /*error*/) const { return false; }
  // Whether an exception has nothing to do with what was done when it came: an interrupt, or lack
  // of memory.
  virtual bool IsTransient(const std::exception& error) const {
    return dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  }
  // Whether it says that there is no code for what was called, and not that the call is wrong.
  virtual bool IsNotImplemented(const std::exception& /*error*/) const { return false; }
  // Whether the calling thread runs a kernel in the middle of a graph, or compiles in the
  // background.
  virtual bool IsInKernel() const { return false; }

  // What interpreting a graph, which is described by its key, costs beside its calls. Infinitely
  // much in each run if it cannot be interpreted.
  virtual Tiering::Extra ExtraCosts(const ir::Description& /*graph*/, ExecutableCache& /*cache*/) {
    return {};
  }
  // Computes the roots of a graph without compiling it, and waits for them. Nothing if it cannot:
  // then the graph is to be compiled. A result may be where a leaf was that is donated. Single
  // calls may be compiled: `cache` has their executables.
  // plan: of a graph that comes back, or nothing. The executor may make one for the next run, or
  // drop it.
  virtual std::optional<std::vector<ir::Ref<ir::Buffer>>> Interpret(const ir::Graph& /*graph*/,
                                                                    ExecutableCache& /*cache*/,
                                                                    ir::Ref<Plan>* /*plan*/) {
    return std::nullopt;
  }
  // What graphs have cost earlier processes, by their structures.
  virtual std::unordered_map<uint64_t, Tiering::Past> PastCosts() { return {}; }
  // The graph's program if it is on disk; otherwise nothing.
  virtual ir::Ref<Executable> Load(const ir::Graph& /*graph*/) { return {}; }
  virtual ir::Ref<Executable> Compile(const ir::Graph& graph) = 0;
  // Begins to compile a graph in another thread, which uses neither the graph nor its nodes.
  // Nothing if it cannot: then the graph is compiled when it is needed.
  virtual ir::Ref<Compilation> StartCompile(const ir::Graph& /*graph*/) { return {}; }
  // Forgets which graphs were interpreted.
  virtual void ClearCache() {}
  // One buffer for each root of the graph. May return before they are computed. When it throws, the
  // leaves are as they were, donated or not. The graph's copied leaves are never donated.
  virtual std::vector<ir::Ref<ir::Buffer>> Execute(Executable& executable,
                                                   const ir::Graph& graph) = 0;

  // Copies dense row-major data to the device and from it. Download waits for the data.
  virtual ir::Ref<ir::Buffer> Upload(const ir::Shape* shape, const void* data) = 0;
  virtual ir::Ref<ir::Buffer> Zeros(const ir::Shape* shape) = 0;
  // The same data in another place.
  virtual ir::Ref<ir::Buffer> Placed(const ir::Shape* /*shape*/, ir::Ref<ir::Buffer> buffer,
                                     ir::Placement /*placement*/) {
    return buffer;
  }
  virtual void Download(ir::Buffer& buffer, void* data, size_t num_bytes) = 0;
  // The data, if it is computed and in the host's memory; otherwise nullptr.
  virtual const void* DataOnHost(const ir::Buffer& /*buffer*/) { return nullptr; }
  // Waits until everything that was started has finished.
  virtual void AwaitAll() = 0;

  // Locks a mutex whose owner may be waiting for a lock of the caller (the GIL, for example), which
  // is released meanwhile.
  virtual void Lock(ir::Mutex& mutex) LITE_ACQUIRE(mutex) { mutex.lock(); }
};

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_EXECUTOR_H_
