// Runs graphs that are not compiled, for the executor: by the interpreter or a plan, on the memory
// of its buffers.
//
//   GraphInterpreter interpreter(compiler, &arrays);
//   interpreter.Run(graph, cache, &plan);
//
// Below the sync lock.

#ifndef TORCH_XLA_LITE_CSRC_PYTHON_GRAPH_INTERPRETER_H_
#define TORCH_XLA_LITE_CSRC_PYTHON_GRAPH_INTERPRETER_H_

#include <ATen/core/Tensor.h>
#include <pybind11/pybind11.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "torch_xla_lite/csrc/interpreter/interpreter.h"
#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/ir/ref.h"
#include "torch_xla_lite/csrc/ir/thread_annotations.h"
#include "torch_xla_lite/csrc/python/arrays.h"
#include "torch_xla_lite/csrc/python/buffer.h"
#include "torch_xla_lite/csrc/python/interpreted_graphs.h"
#include "torch_xla_lite/csrc/runtime/executor.h"
#include "torch_xla_lite/csrc/runtime/tiering.h"

namespace torch_xla_lite::python {

class GraphInterpreter {
 public:
  // compiler: an object with the functions of compiler.Compiler, which has their meaning.
  GraphInterpreter(const pybind11::object& compiler, const Arrays* arrays);

  // These do what runtime::Executor says of ExtraCosts and Interpret.
  runtime::Tiering::Extra ExtraCosts(const ir::Description& graph, runtime::ExecutableCache& cache);
  std::optional<std::vector<ir::Ref<ir::Buffer>>> Run(const ir::Graph& graph,
                                                      runtime::ExecutableCache& cache,
                                                      ir::Ref<runtime::Plan>* plan);
  // Makes graphs run the lowering of an op, not the CPU's kernel.
  void UseLowering(const std::string& op) {
    interpreter_.UseLowering(op);
    ++num_lowerings_;
  }
  const InterpretedGraphs& graphs() const { return graphs_; }
  void Forget();

 private:
  struct KeptPlan;

  // Without Python's lock, if the run is not short. Nothing if the graph cannot be interpreted, or
  // by its plan.
  // data: of the leaves.
  std::optional<std::vector<at::Tensor>> RunPlan(KeptPlan& kept, const ir::Graph& graph,
                                                 std::span<const HostData> data);
  // Stores in the nodes of a graph what an error left of it after a write to a leaf.
  void KeepComputed(const ir::Graph& graph);
  std::optional<std::vector<at::Tensor>> RunCalls(const ir::Graph& graph,
                                                  std::span<const HostData> data,
                                                  interpreter::Trace* trace);
  ir::Ref<runtime::Plan> MakePlan(const ir::Graph& graph, const interpreter::Trace& trace);
  // Of a call that is part of the graph; compiled if it is new.
  ir::Ref<runtime::Executable> ExecutableOf(const ir::Node& call);
  std::vector<at::Tensor> RunLowering(const ir::Node& call, std::span<const at::Tensor> operands);

  const Arrays& arrays_;
  pybind11::function compile_;
  pybind11::function draws_threefry_;
  InterpretedGraphs graphs_;
  bool copies_ = false;  // Whether torch's kernels cannot use the device's memory.
  interpreter::Interpreter interpreter_;
  uint64_t num_lowerings_ = 0;  // Of users. Plans are made for these.
  // During a run, for single calls:
  runtime::ExecutableCache* cache_ = nullptr;
  // and the time spent on compiling them.
  std::chrono::steady_clock::duration compiling_{};
};

}  // namespace torch_xla_lite::python

#endif  // TORCH_XLA_LITE_CSRC_PYTHON_GRAPH_INTERPRETER_H_
