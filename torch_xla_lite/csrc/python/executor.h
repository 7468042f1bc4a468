// The executor that compiles and runs graphs with jax.
//
// It passes a graph's description to a Python function, which traces it and returns a compiled
// executable; it runs that on jax arrays, and copies data between torch's memory and jax arrays.
//
//   PyExecutor executor(compiler);
//   Runtime::Get().SetExecutor(&executor);
//
// Takes the GIL where it needs it. Callers hold no lock of the runtime except the sync lock.

#ifndef TORCH_XLA_LITE_CSRC_PYTHON_EXECUTOR_H_
#define TORCH_XLA_LITE_CSRC_PYTHON_EXECUTOR_H_

#include <ATen/core/Tensor.h>
#include <pybind11/pybind11.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/interpreter/interpreter.h"
#include "torch_xla_lite/csrc/ir/mutex.h"
#include "torch_xla_lite/csrc/ir/placement.h"
#include "torch_xla_lite/csrc/ir/ref.h"
#include "torch_xla_lite/csrc/ir/thread_annotations.h"
#include "torch_xla_lite/csrc/python/description.h"
#include "torch_xla_lite/csrc/python/interpreted_graphs.h"
#include "torch_xla_lite/csrc/runtime/executor.h"
#include "torch_xla_lite/csrc/runtime/tiering.h"

namespace torch_xla_lite::python {

class PyExecutor final : public runtime::Executor {
 public:
  // compiler: an object with the functions of compiler.Compiler, which has their meaning.
  explicit PyExecutor(const pybind11::object& compiler);

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

  const InterpretedGraphs& interpreted_graphs() const { return interpreted_graphs_; }

  void CheckUsable() const override;
  bool IsInterrupt(const std::exception& error) const override;
  bool IsTransient(const std::exception& error) const override;
  bool IsNotImplemented(const std::exception& error) const override;
  bool IsInKernel() const override;
  runtime::Tiering::Extra ExtraCosts(const ir::Description& graph,
                                     runtime::ExecutableCache& cache) override;
  std::optional<std::vector<ir::Ref<ir::Buffer>>> Interpret(const ir::Graph& graph,
                                                            runtime::ExecutableCache& cache,
                                                            ir::Ref<runtime::Plan>* plan) override;
  void ClearCache() override { interpreted_graphs_.Clear(); }
  std::unordered_map<uint64_t, runtime::Tiering::Past> PastCosts() override;
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
  void UseLowering(const std::string& op) {
    interpreter_.UseLowering(op);
    ++num_lowerings_;
  }

 private:
  // Of a graph as steps and roots.
  ir::Ref<runtime::Executable> Compiled(const Description& graph,
                                        const pybind11::object& structure) const;
  struct KeptPlan;

  // Without Python's lock, if the run is not short. Nothing if the graph cannot be interpreted, or
  // by its plan.
  std::optional<std::vector<at::Tensor>> RunPlan(KeptPlan& kept, const ir::Graph& graph);
  std::optional<std::vector<at::Tensor>> RunCalls(const ir::Graph& graph,
                                                  interpreter::Trace* trace);
  ir::Ref<runtime::Plan> MakePlan(const ir::Graph& graph, const interpreter::Trace& trace);
  void NoteRun(const ir::Graph& graph, std::chrono::steady_clock::time_point start,
               bool is_planned);
  // Whether the CPU's kernels can read the device's memory.
  bool HasHostMemory() const;
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
  pybind11::function past_costs_;
  pybind11::function start_compile_;
  pybind11::function has_host_memory_;
  pybind11::function draws_threefry_;
  pybind11::function note_interpreted_;
  InterpretedGraphs interpreted_graphs_;
  bool copies_ = false;  // Whether torch's kernels cannot use the device's memory.
  pybind11::function upload_;
  pybind11::function copy_;
  pybind11::function place_;
  pybind11::object placement_of_uploads_ = pybind11::none();
  pybind11::function report_;
  // Whether a program of XLA has run: it may have checks, which are reported.
  bool has_run_program_ = false;
  pybind11::dict dtypes_;
  interpreter::Interpreter interpreter_;
  uint64_t num_lowerings_ = 0;  // Of users. Plans are made for these.
  // During a call of Interpret, for single calls:
  runtime::ExecutableCache* cache_ = nullptr;
  // and the time spent on compiling them.
  std::chrono::steady_clock::duration compiling_{};
};

}  // namespace torch_xla_lite::python

#endif  // TORCH_XLA_LITE_CSRC_PYTHON_EXECUTOR_H_
