// The Python module _XLAC: the functions of the bridge that Python calls.
//
// Its interface is declared in torch_xla_lite/_XLAC.pyi. Functions that may run a graph release the
// GIL first.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/device/generator.h"
#include "torch_xla_lite/csrc/device/memory.h"
#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/key.h"
#include "torch_xla_lite/csrc/kernels_of_torch/register.h"
#include "torch_xla_lite/csrc/python/deferred_interrupts.h"
#include "torch_xla_lite/csrc/python/description.h"
#include "torch_xla_lite/csrc/python/dropped.h"
#include "torch_xla_lite/csrc/python/executable.h"
#include "torch_xla_lite/csrc/python/executor.h"
#include "torch_xla_lite/csrc/python/source.h"
#include "torch_xla_lite/csrc/python/tensor_bindings.h"
#include "torch_xla_lite/csrc/python/untraced.h"
#include "torch_xla_lite/csrc/record/cpu_fallback.h"
#include "torch_xla_lite/csrc/runtime/costs.h"
#include "torch_xla_lite/csrc/runtime/graph_runner.h"
#include "torch_xla_lite/csrc/runtime/live_values.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"

namespace py = pybind11;

namespace torch_xla_lite::python {
namespace {

using runtime::Runtime;

// `value` is one of TORCH_XLA_LITE_COMPILE (compiler.py). Returns the one before.
std::string SetCompileWhen(std::string value) {
  using runtime::CompileWhen;
  const std::map<std::string, CompileWhen> values = {{"first", CompileWhen::kFirst},
                                                     {"repeated", CompileWhen::kRepeated},
                                                     {"background", CompileWhen::kBackground}};
  Runtime::Get().set_compile_when(values.at(value));
  static auto* current = new std::string("first");
  return std::exchange(*current, std::move(value));
}

// ops: the numbers of OpCosts, in order; g: those of GraphCosts.
void SetCosts(const std::map<std::string, std::array<double, 9>>& ops,
              const std::array<double, 7>& g) {
  std::unordered_map<std::string, runtime::OpCosts> costs;
  for (const auto& [name, n] : ops) {
    costs.emplace(name, runtime::OpCosts{{n[0], n[1], n[2], n[3]}, {n[4], n[5], n[6], n[7]}, n[8]});
  }
  Runtime::Get().costs().Set(std::move(costs), {g[0], g[1], g[2], g[3], g[4], g[5], g[6]});
}

// The pending graph with all that it runs on: steps and roots, as `compile` gets them, the arrays
// of leaves, and runtime scalars as bits.
py::tuple CapturedGraph() {
  const ir::Graph graph = Runtime::Get().PendingGraph();
  py::list leaves;
  for (size_t i = 0; i < graph.leaves.size(); ++i)
    leaves.append(PyExecutor::Get().arrays().Of(graph.data(i)));
  auto [steps, roots] = DescribeGraph(graph);
  return py::make_tuple(steps, roots, leaves, graph.scalars);
}

// Leaves the pending values of this thread out of all syncs: each is computed, or fails, when it is
// read or needed. Gives back what they have overwritten after KeepOverwritten; returns whether
// there was any.
bool AbandonPending() {
  std::vector<ir::Value> abandoned;
  const runtime::RecordScope scope;
  for (runtime::LiveValue* place : runtime::PendingValues()) {
    if (!place->IsOfThisThread()) continue;
    place->Unlink();
    if (ir::Value value = place->Restore()) abandoned.push_back(std::move(value));
  }
  return !abandoned.empty();
}

// Microseconds that the pending graph takes: interpreted, compiling it, loading it, executed.
std::tuple<double, double, double, double> PendingCosts() {
  const ir::Graph graph = Runtime::Get().PendingGraph();
  const runtime::Costs costs = Runtime::Get().costs().Of(graph.description());
  return {costs.interpretation, costs.compilation, costs.load, costs.execution};
}

// (op, calls, elements of operands, elements of results, multiplications) of each pending call.
std::vector<std::tuple<std::string, double, double, double, double>> PendingSizes() {
  const ir::Graph graph = Runtime::Get().PendingGraph();
  const ir::Description& description = graph.description();
  std::vector<std::tuple<std::string, double, double, double, double>> sizes;
  for (const ir::Step& step : description.steps) {
    if (step.kind == ir::StepKind::kLeaf) continue;
    const runtime::CallSize size = runtime::SizeOf(description, step);
    const bool is_write = step.kind == ir::StepKind::kWrite;
    sizes.emplace_back(is_write ? runtime::CostModel::kWrite : step.signature->op, size.calls,
                       size.operands, size.results, size.products);
  }
  return sizes;
}

void RegisterLowering(const std::string& op, bool needs_constants) {
  kernels_of_torch::RegisterLowering(op, needs_constants);
  PyExecutor::Get().interpreter().UseLowering(op);
}

py::dict CostAccounts() {
  py::dict accounts;
  for (const auto& [structure, account] : Runtime::Get().CostAccounts()) {
    accounts[py::int_(structure)] = py::make_tuple(account.spent, account.needed, account.pays,
                                                   account.in_earlier_processes, account.processes);
  }
  return accounts;
}

py::dict Metrics() {
  const runtime::Counters& counters = Runtime::Get().counters();
  py::dict metrics;
  metrics["recorded_ops"] = counters.recorded_ops.load();
  metrics["compiles"] = counters.compiles.load();
  metrics["loads"] = counters.loads.load();
  metrics["executions"] = counters.executions.load();
  metrics["cache_hits"] = counters.cache_hits.load();
  metrics["interpretations"] = counters.interpretations.load();
  metrics["planned"] = counters.planned.load();
  metrics["plans"] = counters.plans.load();
  metrics["fallbacks"] = record::Fallbacks();
  return metrics;
}

void ResetMetrics() {
  runtime::Counters& counters = Runtime::Get().counters();
  counters.recorded_ops = counters.compiles = counters.loads = counters.executions = 0;
  counters.cache_hits = counters.interpretations = 0;
  counters.planned = counters.plans = 0;
  record::ResetFallbacks();
}

void BindCounts(py::module_& module) {
  module.def("pending_costs", &PendingCosts);
  module.def("costs_so_far", [] { return Runtime::Get().costs_so_far(); });
  module.def("pending_sizes", &PendingSizes);
  module.def("set_costs", &SetCosts, py::arg("ops"), py::arg("graph"));
  module.def("interpreted_graphs", [] { return PyExecutor::Get().interpreter().graphs().Rows(); });
  module.def("cost_accounts", &CostAccounts);
  module.def("executions", &Executions);
  module.def("metrics", &Metrics);
  module.def("reset_metrics", &ResetMetrics);
  module.def("note_fallback", &record::CountFallback, py::arg("op"));
}

void BindRandom(py::module_& module) {
  module.def(
      "manual_seed", [](uint64_t seed) { device::DefaultGenerator().set_current_seed(seed); },
      py::arg("seed"));
  module.def("initial_seed", [] { return device::DefaultGenerator().current_seed(); });
  module.def("seed", [] { return device::DefaultGenerator().seed(); });
  module.def("get_rng_state", [] {
    const device::RngState state = device::DefaultGenerator().State();
    return std::pair(state.seed, state.offset);
  });
  module.def(
      "set_rng_state",
      [](uint64_t seed, uint64_t offset) {
        device::DefaultGenerator().SetState({seed, offset});
      },
      py::arg("seed"), py::arg("offset"));
}

}  // namespace

PYBIND11_MODULE(_XLAC, module) {
  kernels_of_torch::RegisterKernels();
  module.def(
      "set_compiler",
      [](const py::object& compiler) {
        // Never destroyed: tensors may be released after the interpreter has begun to shut down.
        Runtime::Get().SetExecutor(new PyExecutor(compiler));
      },
      py::arg("compiler"));
  module.def(
      "set_placement_of_uploads",
      [](py::object placement_of) {
        PyExecutor::Get().SetPlacementOfUploads(std::move(placement_of));
      },
      py::arg("placement_of"));
  // Wrapped like torch's own functions, so that errors have no C++ stack trace.
  module.def("register_lowering", torch::wrap_pybind_function(&RegisterLowering), py::arg("op"),
             py::arg("needs_constants"));
  module.def(
      "use_lowering",
      [](const std::string& op) { PyExecutor::Get().interpreter().UseLowering(op); },
      py::arg("op"));
  module.def("set_ir_debug", &SetDescribe, py::arg("describe"));
  module.def(
      "set_pending_limit", [](size_t limit) { Runtime::Get().set_most_pending(limit); },
      py::arg("limit"));
  module.def("set_compile_when", &SetCompileWhen, py::arg("value"));
  module.def(
      "sync", [] { Runtime::Get().Sync(); }, py::call_guard<py::gil_scoped_release>());
  module.def(
      "synchronize", [] { Runtime::Get().Synchronize(); },
      py::call_guard<py::gil_scoped_release>());
  module.def(
      "set_memory_info",
      [](py::function memory_info) {
        // Never destroyed: torch may ask after the interpreter has begun to shut down.
        device::SetMemoryHooks({.release =
                                    [] {
                                      const Untraced python;
                                      ReleaseDropped();
                                    },
                                .info =
                                    [function = memory_info.release()] {
                                      const Untraced python;
                                      return function().cast<std::pair<size_t, size_t>>();
                                    }});
      },
      py::arg("memory_info"));
  module.def(
      "clear_cache", [] { Runtime::Get().ClearCache(); }, py::call_guard<py::gil_scoped_release>());
  module.def(
      "set_in_kernel",
      [](uintptr_t function) { PyExecutor::SetInKernel(reinterpret_cast<bool (*)()>(function)); },
      py::arg("function"));
  module.def("set_is_compiler_thread", &PyExecutor::SetIsCompilerThread);
  module.def("use_in_this_process", [] {
    const bool is_possible = !Runtime::Get().IsSyncing();
    if (is_possible) UseInThisProcess();
    return is_possible;
  });
  module.def("pending_graph", [] { return DescribeGraph(Runtime::Get().PendingGraph()); });
  module.def("captured_graph", &CapturedGraph);
  module.def("abandon_pending", &AbandonPending);
  module.def("keep_overwritten", &runtime::KeepOverwritten);
  module.def(
      "refuse_reads", [](bool refuses) { return Runtime::Get().RefuseReads(refuses); },
      py::arg("refuses"));
  module.def(
      "uninterrupted",
      [](const py::function& function) {
        const DeferredInterrupts deferred;
        return function();
      },
      py::arg("function"));
  BindCounts(module);
  BindRandom(module);
  BindTensors(module);
}

}  // namespace torch_xla_lite::python
