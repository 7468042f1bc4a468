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

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/ir/mutex.h"
#include "torch_xla_lite/csrc/ir/placement.h"
#include "torch_xla_lite/csrc/ir/ref.h"
#include "torch_xla_lite/csrc/ir/thread_annotations.h"
#include "torch_xla_lite/csrc/python/arrays.h"
#include "torch_xla_lite/csrc/python/graph_interpreter.h"
#include "torch_xla_lite/csrc/runtime/executor.h"
#include "torch_xla_lite/csrc/runtime/tiering.h"

namespace torch_xla_lite::python {

class PyExecutor final : public runtime::Executor {
 public:
  // compiler: an object with the functions of compiler.Compiler, which has their meaning.
  explicit PyExecutor(const pybind11::object& compiler);
  // The one that the runtime has.
  static PyExecutor& Get();

  // A function without arguments in the memory of another library that says whether its kernels run
  // on the calling thread.
  static void SetInKernel(bool (*in_kernel)());
  // placement_of(dims) -> where what the program copies to the device goes; None: to one device.
  void SetPlacementOfUploads(pybind11::object placement_of) {
    placement_of_uploads_ = std::move(placement_of);
  }
  // The calling thread compiles in the background.
  static void SetIsCompilerThread();

  const Arrays& arrays() const { return arrays_; }
  GraphInterpreter& interpreter() { return interpreter_; }

  void CheckUsable() const override;
  // Also a warning that Python's filter has made an error: no step is to blame, and it is not lost.
  bool IsInterrupt(const std::exception& error) const override;
  bool IsTransient(const std::exception& error) const override;
  bool IsNotImplemented(const std::exception& error) const override;
  bool IsInKernel() const override;
  runtime::Tiering::Extra ExtraCosts(const ir::Description& graph,
                                     runtime::ExecutableCache& cache) override {
    return interpreter_.ExtraCosts(graph, cache);
  }
  std::optional<std::vector<ir::Ref<ir::Buffer>>> Interpret(const ir::Graph& graph,
                                                            runtime::ExecutableCache& cache,
                                                            ir::Ref<runtime::Plan>* plan) override {
    return interpreter_.Run(graph, cache, plan);
  }
  void ClearCache() override { interpreter_.Forget(); }
  std::unordered_map<uint64_t, runtime::Tiering::Past> PastCosts() override;
  ir::Ref<runtime::Executable> Load(const ir::Graph& graph) override;
  ir::Ref<runtime::Executable> Compile(const ir::Graph& graph) override;
  ir::Ref<runtime::Compilation> StartCompile(const ir::Graph& graph) override;
  std::vector<ir::Ref<ir::Buffer>> Execute(runtime::Executable& executable,
                                           const ir::Graph& graph) override;
  ir::Ref<ir::Buffer> Upload(const ir::Shape* shape, const void* data) override;
  ir::Ref<ir::Buffer> Zeros(const ir::Shape* shape) override;
  ir::Ref<ir::Buffer> Placed(const ir::Shape* shape, ir::Ref<ir::Buffer> buffer,
                             ir::Placement placement) override {
    return arrays_.Placed(shape, std::move(buffer), placement);
  }
  void Download(ir::Buffer& buffer, void* data, size_t num_bytes) override;
  const void* DataOnHost(const ir::Buffer& buffer) override;
  void AwaitAll() override;
  void Lock(ir::Mutex& mutex) LITE_ACQUIRE(mutex) override;

 private:
  void MoveLeaves(const ir::Graph& graph, const std::vector<ir::Placement>& placements);

  pybind11::function compile_;
  pybind11::function load_;
  pybind11::function past_costs_;
  pybind11::function start_compile_;
  pybind11::object placement_of_uploads_ = pybind11::none();
  pybind11::function report_;
  const Arrays arrays_;
  GraphInterpreter interpreter_;
};

}  // namespace torch_xla_lite::python

#endif  // TORCH_XLA_LITE_CSRC_PYTHON_EXECUTOR_H_
