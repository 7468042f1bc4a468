// The executor that compiles and runs graphs with jax.
//
// It passes a graph's description to a Python function, which traces it and returns a compiled
// executable; it runs that on jax arrays, and copies data between torch's memory and jax arrays.
//
//   PyExecutor executor(compile, upload, dtypes);
//   Runtime::Get().SetExecutor(&executor);
//
// Takes the GIL where it needs it. Callers hold no lock of the runtime except the sync lock.

#ifndef TORCH_XLA_LITE_CSRC_PYTHON_EXECUTOR_H_
#define TORCH_XLA_LITE_CSRC_PYTHON_EXECUTOR_H_

#include <ATen/core/Tensor.h>
#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/interpreter/interpreter.h"
#include "torch_xla_lite/csrc/ir/mutex.h"
#include "torch_xla_lite/csrc/ir/placement.h"
#include "torch_xla_lite/csrc/ir/recent_table.h"
#include "torch_xla_lite/csrc/ir/ref.h"
#include "torch_xla_lite/csrc/ir/thread_annotations.h"
#include "torch_xla_lite/csrc/python/interpreted_lines.h"
#include "torch_xla_lite/csrc/runtime/executor.h"

namespace torch_xla_lite::ir {
struct Graph;
}  // namespace torch_xla_lite::ir

namespace torch_xla_lite::python {

// A jax.Array, or a tensor of the CPU that becomes one when jax needs it: making an array takes
// 30 us, more than most kernels. It may be dropped on any thread and under any lock. The executor
// then releases Python's reference when it has Python's lock again, or the main thread does, as
// soon as it can.
class PyBuffer final : public ir::Buffer {
 public:
  PyBuffer(pybind11::object array, const ir::Shape* shape, ir::Placement placement);
  // Takes a dense tensor whose memory nothing else refers to.
  explicit PyBuffer(at::Tensor tensor);
  ~PyBuffer() override;

  bool IsExclusive() const override {
    PyObject* const array = array_;
    return array == nullptr || Py_REFCNT(array) == 1;
  }
  ir::Placement placement() const override { return placement_; }
  // The array, or nullptr while it is a tensor alone (PyExecutor::ArrayOf).
  pybind11::handle array() const { return array_.load(); }
  // The tensor that it was made of. The array has the same memory.
  const at::Tensor& tensor() const { return tensor_; }
  // With Python's lock.
  void SetArray(pybind11::object array);
  // Replaces the array by one that has the same data in another place. With Python's lock.
  void Move(pybind11::object array, ir::Placement placement);

 private:
  const at::Tensor tensor_;
  std::atomic<PyObject*> array_ = nullptr;
  const int64_t num_bytes_;
  std::atomic<ir::Placement> placement_ = ir::kOneDevice;
};

// Steps and roots of a graph, as `compile` gets them.
std::pair<pybind11::list, pybind11::list> DescribeGraph(const ir::Graph& graph);

// How often each executable has run, in the order in which they were compiled.
std::vector<uint64_t> Executions();

class PyExecutor final : public runtime::Executor {
 public:
  // compile(steps, roots, structure) -> (callable, info), where info has the attributes `number`,
  // of the executable, `loaded`, and `placements`, of its leaves and roots if they are on a mesh,
  // and structure is the same for graphs that differ in donation alone, and None for an op that an
  // interpreted graph runs compiled; load, with the same arguments -> the same, or None if it is
  // not on disk; start_compile, with the same arguments ->
  // concurrent.futures.Future of what compile returns; note_interpreted(number of ops, seconds,
  // structure, describe) is called after the first run of each graph that was not compiled, where
  // describe() -> (steps, roots); is_library(file) -> whether its code is no user's;
  // upload(numpy.ndarray) -> jax.Array; copy(jax.Array) -> jax.Array;
  // place(jax.Array, placement) -> the same data there;
  // report() is called when a value leaves the device, and raises what graphs have noted by then;
  // dtypes: {torch's number: numpy.dtype}.
  PyExecutor(pybind11::function compile, pybind11::function load, pybind11::function start_compile,
             pybind11::function can_interpret, pybind11::function note_interpreted,
             pybind11::function is_library, pybind11::function upload, pybind11::function copy,
             pybind11::function place, pybind11::function report, pybind11::dict dtypes);

  // The jax.Array of a buffer, which owns it. With Python's lock.
  pybind11::handle ArrayOf(ir::Buffer* buffer) const;

  // torch's number of a numpy.dtype. Throws TypeError if torch has none.
  int TorchDtype(pybind11::handle dtype) const;

  // A function without arguments in the memory of another library that says whether its kernels run
  // on the calling thread.
  static void SetInKernel(bool (*in_kernel)());
  // placement_of(dims) -> where what the program copies to the device goes; None: to one device.
  void SetPlacementOfUploads(pybind11::object placement_of) {
    placement_of_uploads_ = std::move(placement_of);
  }
  // The calling thread compiles in the background.
  static void SetIsCompilerThread();

  const InterpretedLines& interpreted_lines() const { return interpreted_lines_; }

  void CheckUsable() const override;
  bool IsInterrupt(const std::exception& error) const override;
  bool IsInterruption(const std::exception& error) const override;
  bool IsInKernel() const override;
  std::optional<std::vector<ir::Ref<ir::Buffer>>> Interpret(
      const ir::Graph& graph, runtime::ExecutableCache& cache) override;
  void ClearCache() override { interpreted_.Clear(); }
  ir::Ref<runtime::Executable> Load(const ir::Graph& graph) override;
  ir::Ref<runtime::Executable> Compile(const ir::Graph& graph) override;
  ir::Ref<runtime::Compilation> StartCompile(const ir::Graph& graph) override;
  std::vector<ir::Ref<ir::Buffer>> Execute(runtime::Executable& executable,
                                           const ir::Graph& graph) override;
  ir::Ref<ir::Buffer> Upload(const ir::Shape* shape, const void* data) override;
  ir::Ref<ir::Buffer> Zeros(const ir::Shape* shape) override;
  ir::Ref<ir::Buffer> Placed(const ir::Shape* shape, ir::Ref<ir::Buffer> buffer,
                             ir::Placement placement) override;
  void Download(ir::Buffer& buffer, void* data, size_t num_bytes) override;
  void AwaitAll() override;
  void Lock(ir::Mutex& mutex) LITE_ACQUIRE(mutex) override;

  // Makes interpreted graphs run the lowering of an op, not the CPU's kernel.
  void UseLowering(const std::string& op) { interpreter_.UseLowering(op); }

 private:
  // Of a graph as steps and roots.
  ir::Ref<runtime::Executable> Compiled(const std::pair<pybind11::list, pybind11::list>& graph,
                                        const pybind11::object& structure) const;
  // Whether the CPU's kernels can read the device's memory.
  bool CanInterpret() const;
  // Of a call that is part of an interpreted graph; compiled if it is new.
  ir::Ref<runtime::Executable> ExecutableOf(const ir::Node& call);
  void MoveLeaves(const ir::Graph& graph, const std::vector<ir::Placement>& placements);
  std::vector<at::Tensor> RunLowering(const ir::Node& call, std::span<const at::Tensor> operands);
  // Takes a tensor that nothing else refers to.
  ir::Ref<ir::Buffer> BufferOf(at::Tensor tensor) const;
  // The jax.Array of a tensor, which it holds: no data is copied where jax can use its memory.
  pybind11::object Uploaded(const at::Tensor& tensor) const;

  pybind11::function compile_;
  pybind11::function load_;
  pybind11::function start_compile_;
  pybind11::function can_interpret_;
  pybind11::function note_interpreted_;
  InterpretedLines interpreted_lines_;
  pybind11::function upload_;
  pybind11::function copy_;
  pybind11::function place_;
  pybind11::object placement_of_uploads_ = pybind11::none();
  pybind11::function report_;
  pybind11::dict dtypes_;
  interpreter::Interpreter interpreter_;
  // During a call of Interpret, for single calls:
  runtime::ExecutableCache* cache_ = nullptr;
  // and the time spent on compiling them.
  std::chrono::steady_clock::duration compiling_{};
  // The structures of the graphs that were interpreted, by their hashes.
  struct Seen : ir::RefCounted {};
  ir::RecentTable<Seen> interpreted_{/*limit=*/16'384};
};

}  // namespace torch_xla_lite::python

#endif  // TORCH_XLA_LITE_CSRC_PYTHON_EXECUTOR_H_
