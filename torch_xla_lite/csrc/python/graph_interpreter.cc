#include "torch_xla_lite/csrc/python/graph_interpreter.h"

#include <c10/core/DefaultDtype.h>
#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>
#include <pybind11/numpy.h>

#include <exception>
#include <limits>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/key.h"
#include "torch_xla_lite/csrc/ir/placement.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/python/buffer.h"
#include "torch_xla_lite/csrc/python/description.h"
#include "torch_xla_lite/csrc/python/dropped.h"
#include "torch_xla_lite/csrc/python/executable.h"
#include "torch_xla_lite/csrc/python/untraced.h"
#include "torch_xla_lite/csrc/runtime/costs.h"
#include "torch_xla_lite/csrc/runtime/executable_cache.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"
#include "torch_xla_lite/csrc/tensor/host_view.h"

namespace py = pybind11;

namespace torch_xla_lite::python {
namespace {

const PyBuffer& BufferOf(const ir::Graph& graph, size_t leaf) {
  return static_cast<const PyBuffer&>(*graph.data(leaf));
}

// Whether nothing but the buffer refers to its memory.
bool HasOwnTensor(const PyBuffer& buffer) {
  const at::Tensor& tensor = buffer.tensor();
  return !buffer.array() && tensor.use_count() == 1 && tensor.storage().use_count() == 1;
}

// The memories of a graph's leaves, in which results may be.
class LeafMemories {
 public:
  explicit LeafMemories(const ir::Graph& graph) {
    for (size_t i = 0; i < graph.leaves.size(); ++i) {
      const PyBuffer& buffer = BufferOf(graph, i);
      if (HasOwnTensor(buffer)) buffers_.emplace(buffer.tensor().const_data_ptr(), &buffer);
    }
  }

  // Makes a result that fills such a memory one that owns it.
  void Own(at::Tensor* result) const {
    const auto found = buffers_.find(result->const_data_ptr());
    if (found == buffers_.end() || result->numel() == 0) return;
    at::Tensor owner(at::detail::make_tensor_base<c10::TensorImpl>(
        c10::Storage(found->second->tensor().storage()), c10::DispatchKeySet(c10::DispatchKey::CPU),
        result->dtype()));
    owner.unsafeGetTensorImpl()->set_sizes_contiguous(result->sizes());
    *result = std::move(owner);
  }

 private:
  std::unordered_map<const void*, const PyBuffer*> buffers_;
};

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Of what a graph takes and gives between the device and the CPU, in microseconds. Bookkeeping on
// small numbers is worth it; other graphs are not.
double CostOfCopies(const ir::Description& graph) {
  constexpr double kMostBytes = 1 << 16;
  constexpr double kCopy = 20;
  double bytes = 0;
  double copies = 0;
  const auto add = [&](const ir::Shape* shape) {
    bytes +=
        static_cast<double>(shape->NumElements() * c10::elementSize(tensor::ScalarTypeOf(shape)));
    ++copies;
  };
  for (const ir::Step& step : graph.steps) {
    if (step.kind == ir::StepKind::kLeaf) add(step.leaf);
  }
  for (const ir::Position root : graph.roots) add(ir::ShapeAt(graph, root));
  return bytes > kMostBytes ? kInfinite : copies * kCopy;
}

}  // namespace

GraphInterpreter::GraphInterpreter(const py::object& compiler, const Arrays* arrays)
    : arrays_(*arrays),
      compile_(compiler.attr("compile")),
      draws_threefry_(compiler.attr("draws_threefry")),
      graphs_(compiler.attr("note_interpreted")),
      interpreter_(
          [this](const ir::Node& call, std::span<const at::Tensor> operands) {
            return RunLowering(call, operands);
          },
          [this] {
            const Untraced python;
            return draws_threefry_().cast<bool>();
          }) {}

runtime::Tiering::Extra GraphInterpreter::ExtraCosts(const ir::Description& graph,
                                                     runtime::ExecutableCache& cache) {
  runtime::Tiering::Extra extra;
  std::unordered_set<const ir::Signature*> counted;
  for (const ir::Step& step : graph.steps) {
    const ir::Signature* const call = step.signature;
    if (call == nullptr || !interpreter_.RunsLowering(*call) || !counted.insert(call).second) {
      continue;
    }
    std::vector<const ir::Shape*> operands;
    for (const ir::Position operand : step.operands) {
      operands.push_back(ir::ShapeAt(graph, operand));
    }
    const std::vector<uint64_t> key = ir::KeyOfCall(*call, operands, step.num_scalars);
    if (!cache.Find(key)) {
      extra.compilation += runtime::Runtime::Get().costs().Of(ir::Describe(key)).compilation;
    }
  }
  const Untraced python;
  copies_ = !arrays_.HasHostMemory();
  if (copies_) extra.interpretation = counted.empty() ? CostOfCopies(graph) : kInfinite;
  return extra;
}

struct GraphInterpreter::KeptPlan final : runtime::Plan {
  std::unique_ptr<interpreter::Plan> plan;  // Nothing if the graph cannot have one.
  uint64_t num_lowerings = 0;
  // Calls that were recorded with another one run their lowerings.
  c10::ScalarType default_dtype = c10::get_default_dtype_as_scalartype();
};

// After any error the graph is compiled instead, so that the error names op and line.
std::optional<std::vector<ir::Ref<ir::Buffer>>> GraphInterpreter::Run(
    const ir::Graph& graph, runtime::ExecutableCache& cache, ir::Ref<runtime::Plan>* plan) {
  const Untraced python;
  auto* const kept = plan == nullptr ? nullptr : static_cast<KeptPlan*>(plan->get());
  const bool has_plan = kept != nullptr && kept->plan != nullptr;
  // What each device has in full may be interpreted; parts are not gathered here.
  for (size_t i = 0; i < graph.leaves.size(); ++i) {
    if (ir::IsSplit(graph.data(i)->placement())) return std::nullopt;
  }
  ReleaseDropped();
  cache_ = &cache;
  compiling_ = {};
  const auto start = std::chrono::steady_clock::now();
  std::vector<HostData> data;
  data.reserve(graph.leaves.size());
  for (size_t i = 0; i < graph.leaves.size(); ++i) {
    data.push_back(DataOf(BufferOf(graph, i)));
  }
  std::optional<std::vector<at::Tensor>> roots;
  if (has_plan) roots = RunPlan(*kept, graph, data);
  if (!roots) {
    const bool comes_back = plan != nullptr && kept == nullptr;
    interpreter::Trace trace;
    roots = RunCalls(graph, data, comes_back ? &trace : nullptr);
    if (!roots) return std::nullopt;
    if (comes_back) *plan = MakePlan(graph, trace);
  }
  std::vector<ir::Ref<ir::Buffer>> results;
  results.reserve(roots->size());
  for (at::Tensor& root : *roots) {
    results.push_back(ir::Ref<ir::Buffer>::Take(new PyBuffer(std::move(root))));
    if (copies_) arrays_.Of(results.back().get());
  }
  for (size_t i = 0; i < graph.root_placements.size(); ++i) {
    if (graph.root_placements[i] == ir::kAnywhere) continue;
    results[i] =
        arrays_.Placed(graph.roots[i].shape(), std::move(results[i]), graph.root_placements[i]);
  }
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start - compiling_;
  // Where leaves may have been overwritten, the results must not be lost.
  const bool has_planned = has_plan && kept->plan != nullptr;
  graphs_.Note(graph, seconds.count(),
               /*may_raise=*/!has_planned && !interpreter_.has_written());
  return results;
}

void GraphInterpreter::KeepComputed(const ir::Graph& graph) {
  const LeafMemories memories(graph);
  std::vector<std::pair<ir::Position, ir::Ref<ir::Buffer>>> buffers;
  for (auto& [position, tensor] : interpreter_.TakeComputed()) {
    memories.Own(&tensor);
    buffers.emplace_back(position, ir::Ref<ir::Buffer>::Take(new PyBuffer(std::move(tensor))));
  }
  const runtime::RecordScope scope;
  for (auto& [position, buffer] : buffers) {
    graph.nodes[position.step]->SetBuffer(position.output, std::move(buffer));
  }
}

std::optional<std::vector<at::Tensor>> GraphInterpreter::RunCalls(const ir::Graph& graph,
                                                                  std::span<const HostData> data,
                                                                  interpreter::Trace* trace) {
  std::vector<interpreter::Interpreter::Leaf> leaves;
  for (size_t i = 0; i < data.size(); ++i) {
    const ir::Shape* const shape = graph.leaves[i].shape();
    leaves.push_back({at::Tensor(tensor::HostView(tensor::ScalarTypeOf(shape), shape->dims(),
                                                  const_cast<void*>(data[i].start)))});
    leaves[i].is_exclusive = graph.mesh == 0 && HasOwnTensor(BufferOf(graph, i));
  }
  try {
    const py::gil_scoped_release no_gil;
    auto roots = interpreter_.Run(graph, std::move(leaves), trace);
    const LeafMemories memories(graph);
    for (at::Tensor& root : roots) memories.Own(&root);
    return roots;
  } catch (const std::exception& error) {
    KeepComputed(graph);
    if (interpreter_.has_written() || runtime::Runtime::Get().executor().IsTransient(error)) throw;
  } catch (const runtime::StepFailure&) {
    KeepComputed(graph);
    if (interpreter_.has_written()) throw;
  }
  return std::nullopt;
}

std::optional<std::vector<at::Tensor>> GraphInterpreter::RunPlan(KeptPlan& kept,
                                                                 const ir::Graph& graph,
                                                                 std::span<const HostData> data) {
  if (kept.num_lowerings != num_lowerings_ ||
      kept.default_dtype != c10::get_default_dtype_as_scalartype()) {
    kept.plan.reset();
    return std::nullopt;
  }
  std::vector<interpreter::Plan::Leaf> leaves;
  leaves.reserve(data.size());
  for (size_t i = 0; i < data.size(); ++i) {
    leaves.push_back({const_cast<void*>(data[i].start), {}});
    if (!kept.plan->Overwrites(i)) continue;
    const PyBuffer& buffer = BufferOf(graph, i);
    leaves[i].tensor =
        HasOwnTensor(buffer) ? buffer.tensor() : CopyOf(leaves[i].data, graph.leaves[i].shape());
    leaves[i].data = leaves[i].tensor.mutable_data_ptr();
  }
  try {
    std::optional<py::gil_scoped_release> no_gil;
    if (!kept.plan->is_short()) no_gil.emplace();
    auto roots = interpreter_.Run(*kept.plan, graph, leaves);
    ++runtime::Runtime::Get().counters().planned;
    return roots;
  } catch (const std::exception& error) {
    const bool is_transient = runtime::Runtime::Get().executor().IsTransient(error);
    if (is_transient || kept.plan->has_written()) throw;
  } catch (const runtime::StepFailure&) {
    if (kept.plan->has_written()) throw;
  }
  // The calls of ATen say what is wrong.
  kept.plan.reset();
  return std::nullopt;
}

ir::Ref<runtime::Plan> GraphInterpreter::MakePlan(const ir::Graph& graph,
                                                  const interpreter::Trace& trace) {
  auto kept = ir::MakeRef<KeptPlan>();
  kept->num_lowerings = num_lowerings_;
  if (trace.is_plain() && graph.mesh == 0) {
    kept->plan = interpreter_.MakePlan(graph, trace);
    ++runtime::Runtime::Get().counters().plans;
  }
  return kept;
}

void GraphInterpreter::Forget() {
  const Untraced python;
  graphs_.Clear();
}

// Below the sync lock, without which no operand is dropped.
ir::Ref<runtime::Executable> GraphInterpreter::ExecutableOf(const ir::Node& call)
    LITE_NO_THREAD_SAFETY_ANALYSIS {
  std::vector<const ir::Shape*> operands;
  for (const ir::Value& operand : call.operands()) operands.push_back(operand.shape());
  const auto num_scalars = static_cast<uint32_t>(call.scalars().size());
  std::vector<uint64_t> key = ir::KeyOfCall(call.signature(), operands, num_scalars);
  if (auto executable = cache_->Find(key)) return executable;
  std::vector<uint32_t> sources(operands.size());
  sources.push_back(call.source);
  const auto start = std::chrono::steady_clock::now();
  auto executable = Compiled(compile_, DescribeKey(key, sources), /*structure=*/py::none());
  compiling_ += std::chrono::steady_clock::now() - start;
  runtime::Runtime::Get().counters().CountCompiled(executable->is_loaded());
  cache_->Insert(ir::KeptKey(std::move(key)), executable);
  return executable;
}

// Called without Python's lock.
std::vector<at::Tensor> GraphInterpreter::RunLowering(const ir::Node& call,
                                                      std::span<const at::Tensor> operands) {
  const Untraced python;
  const ir::Signature& signature = call.signature();
  const ir::Ref<runtime::Executable> executable = ExecutableOf(call);
  std::vector<py::object> owned;
  for (const at::Tensor& operand : operands) owned.push_back(arrays_.Uploaded(operand));
  if (!call.scalars().empty()) owned.push_back(PackScalars(call.scalars()));
  std::vector<PyObject*> arguments;
  for (const py::object& argument : owned) arguments.push_back(argument.ptr());
  const py::sequence returned = static_cast<const PyExecutable&>(*executable).Call(arguments);
  std::vector<at::Tensor> results;
  size_t defined = 0;
  for (const ir::Shape* shape : signature.outputs) {
    if (shape == nullptr) {
      results.emplace_back();
    } else {
      const py::array array = HostArray(returned[defined++]);
      results.push_back(CopyOf(array.data(), shape));
    }
  }
  return results;
}

}  // namespace torch_xla_lite::python
