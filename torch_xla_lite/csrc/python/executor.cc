#include "torch_xla_lite/csrc/python/executor.h"

#include <ATen/EmptyTensor.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "torch_xla_lite/csrc/device/block_allocator.h"
#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/key.h"
#include "torch_xla_lite/csrc/ir/placement.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/python/buffer.h"
#include "torch_xla_lite/csrc/python/deferred_interrupts.h"
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

// The class of an exception of Python, else nullptr.
PyObject* PythonType(const std::exception& error) {
  if (const auto* ours = dynamic_cast<const py::error_already_set*>(&error))
    return ours->type().ptr();
  const auto* torchs = dynamic_cast<const python_error*>(&error);
  return torchs == nullptr ? nullptr : torchs->type;
}

std::atomic<bool (*)()> in_kernel = nullptr;
thread_local bool is_compiler_thread = false;

// Its memory has the alignment that jax asks for.
at::Tensor Empty(const ir::Shape* shape) {
  const device::BlockScope blocks;
  return at::Tensor(at::detail::empty_cpu(shape->dims(), tensor::ScalarTypeOf(shape)));
}

at::Tensor CopyOf(const void* data, const ir::Shape* shape) {
  at::Tensor copy = Empty(shape);
  std::memcpy(copy.mutable_data_ptr(), data, copy.nbytes());
  return copy;
}

// The data of a leaf that is donated, in memory that nothing else refers to.
at::Tensor OwnTensor(const PyBuffer& buffer, void* data, const ir::Shape* shape) {
  const at::Tensor& tensor = buffer.tensor();
  const bool is_exclusive =
      !buffer.array() && tensor.use_count() == 1 && tensor.storage().use_count() == 1;
  return is_exclusive ? tensor : CopyOf(data, shape);
}

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

// The graph's scalars as int32[n, 2], because jax would truncate 64-bit arguments to 32 bits.
py::object PackScalars(std::span<const uint64_t> scalars) {
  py::array_t<int32_t> packed({static_cast<py::ssize_t>(scalars.size()), py::ssize_t{2}});
  std::memcpy(packed.mutable_data(), scalars.data(), scalars.size_bytes());
  return packed;
}

}  // namespace

PyExecutor::PyExecutor(const py::object& compiler)
    : compile_(compiler.attr("compile")),
      load_(compiler.attr("load")),
      past_costs_(compiler.attr("past_costs")),
      start_compile_(compiler.attr("start_compile")),
      has_host_memory_(compiler.attr("has_host_memory")),
      draws_threefry_(compiler.attr("draws_threefry")),
      note_interpreted_(compiler.attr("note_interpreted")),
      upload_(compiler.attr("upload")),
      copy_(compiler.attr("copy")),
      place_(compiler.attr("place")),
      report_(compiler.attr("report")),
      dtypes_(compiler.attr("dtypes")),
      interpreter_(
          [this](const ir::Node& call, std::span<const at::Tensor> operands) {
            return RunLowering(call, operands);
          },
          [this] {
            const Untraced python;
            return draws_threefry_().cast<bool>();
          }) {
  UseInThisProcess();
}

void PyExecutor::SetInKernel(bool (*hook)()) { in_kernel = hook; }

void PyExecutor::SetIsCompilerThread() { is_compiler_thread = true; }

bool PyExecutor::IsInKernel() const {
  if (is_compiler_thread) return true;
  bool (*const hook)() = in_kernel;
  return hook != nullptr && hook();
}

bool PyExecutor::IsInterrupt(const std::exception& error) const {
  PyObject* const type = PythonType(error);
  if (type == nullptr) return false;
  const py::gil_scoped_acquire gil;
  return PyErr_GivenExceptionMatches(type, PyExc_Exception) == 0;
}

bool PyExecutor::IsTransient(const std::exception& error) const {
  PyObject* const type = PythonType(error);
  if (type == nullptr) return runtime::Executor::IsTransient(error);
  if (IsInterrupt(error)) return true;
  const py::gil_scoped_acquire gil;
  return PyErr_GivenExceptionMatches(type, PyExc_MemoryError) != 0;
}

bool PyExecutor::IsNotImplemented(const std::exception& error) const {
  PyObject* const type = PythonType(error);
  if (type == nullptr) return false;
  const py::gil_scoped_acquire gil;
  return PyErr_GivenExceptionMatches(type, PyExc_NotImplementedError) != 0;
}

// In a forked process small graphs would run, and the first large one would hang, waiting for
// threads that were not forked.
void PyExecutor::CheckUsable() const {
  if (!IsForked()) return;
  throw std::runtime_error(
      "device jax cannot be used in a forked process: XLA's threads were not forked.\n"
      "Start a new process instead:  torch.multiprocessing.set_start_method('spawn')");
}

int PyExecutor::TorchDtype(py::handle dtype) const {
  for (const auto& [number, candidate] : dtypes_) {
    if (candidate.equal(dtype)) return number.cast<int>();
  }
  throw py::type_error("torch has no element type " + py::str(dtype).cast<std::string>() +
                       ".\nConvert the array first:  array.astype('float32')");
}

bool PyExecutor::HasHostMemory() const {
  const bool has_host_memory = has_host_memory_().cast<bool>();
  // By now there is a client of XLA. It is never released: at the end of a forked process it would
  // wait for threads that were not forked.
  [[maybe_unused]] static const auto* devices =
      new py::object(py::module_::import("jax").attr("devices")());
  return has_host_memory;
}

runtime::Tiering::Extra PyExecutor::ExtraCosts(const ir::Description& graph,
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
  copies_ = !HasHostMemory();
  if (copies_) extra.interpretation = counted.empty() ? CostOfCopies(graph) : kInfinite;
  return extra;
}

struct PyExecutor::KeptPlan final : runtime::Plan {
  std::unique_ptr<interpreter::Plan> plan;  // Nothing if the graph cannot have one.
  uint64_t num_lowerings = 0;
};

// After any error the graph is compiled instead, so that the error names op and line.
std::optional<std::vector<ir::Ref<ir::Buffer>>> PyExecutor::Interpret(
    const ir::Graph& graph, runtime::ExecutableCache& cache, ir::Ref<runtime::Plan>* plan) {
  const Untraced python;
  auto* const kept = static_cast<KeptPlan*>(plan->get());
  const bool has_plan = kept != nullptr && kept->plan != nullptr;
  // What each device has in full may be interpreted; parts are not gathered here.
  for (size_t i = 0; i < graph.leaves.size(); ++i) {
    if (ir::IsSplit(graph.data(i)->placement())) return std::nullopt;
  }
  ReleaseDropped();
  cache_ = &cache;
  compiling_ = {};
  const auto start = std::chrono::steady_clock::now();
  std::optional<std::vector<at::Tensor>> roots;
  if (has_plan) roots = RunPlan(*kept, graph);
  if (!roots) {
    const bool comes_back = kept == nullptr && interpreted_graphs_.Has(graph.structure());
    interpreter::Trace trace;
    roots = RunCalls(graph, comes_back ? &trace : nullptr);
    if (!roots) return std::nullopt;
    if (comes_back) *plan = MakePlan(graph, trace);
  }
  std::vector<ir::Ref<ir::Buffer>> results;
  results.reserve(roots->size());
  for (at::Tensor& root : *roots) {
    results.push_back(ir::Ref<ir::Buffer>::Take(new PyBuffer(std::move(root))));
    if (copies_) ArrayOf(results.back().get());
  }
  for (size_t i = 0; i < graph.root_placements.size(); ++i) {
    if (graph.root_placements[i] == ir::kAnywhere) continue;
    results[i] = Placed(graph.roots[i].shape(), std::move(results[i]), graph.root_placements[i]);
  }
  NoteRun(graph, start, /*is_planned=*/has_plan && kept->plan != nullptr);
  return results;
}

std::optional<std::vector<at::Tensor>> PyExecutor::RunCalls(const ir::Graph& graph,
                                                            interpreter::Trace* trace) {
  std::vector<HostData> data;
  std::vector<at::Tensor> leaves;
  for (size_t i = 0; i < graph.leaves.size(); ++i) {
    const ir::Shape* const shape = graph.leaves[i].shape();
    data.push_back(DataOf(static_cast<const PyBuffer&>(*graph.data(i))));
    leaves.emplace_back(tensor::HostView(tensor::ScalarTypeOf(shape), shape->dims(),
                                         const_cast<void*>(data.back().start)));
  }
  try {
    const py::gil_scoped_release no_gil;
    return interpreter_.Run(graph, std::move(leaves), trace);
  } catch (const std::exception& error) {
    if (IsTransient(error)) throw;
    return std::nullopt;
  } catch (const runtime::StepFailure&) {
    return std::nullopt;
  }
}

std::optional<std::vector<at::Tensor>> PyExecutor::RunPlan(KeptPlan& kept, const ir::Graph& graph) {
  if (kept.num_lowerings != num_lowerings_) {
    kept.plan.reset();
    return std::nullopt;
  }
  std::vector<HostData> data;
  std::vector<interpreter::Plan::Leaf> leaves;
  data.reserve(graph.leaves.size());
  leaves.reserve(graph.leaves.size());
  for (size_t i = 0; i < graph.leaves.size(); ++i) {
    const auto& buffer = static_cast<const PyBuffer&>(*graph.data(i));
    data.push_back(DataOf(buffer));
    leaves.push_back({const_cast<void*>(data.back().start), {}});
    if (!kept.plan->Overwrites(i)) continue;
    leaves[i].tensor = OwnTensor(buffer, leaves[i].data, graph.leaves[i].shape());
    leaves[i].data = leaves[i].tensor.mutable_data_ptr();
  }
  try {
    std::optional<py::gil_scoped_release> no_gil;
    if (!kept.plan->is_short()) no_gil.emplace();
    auto roots = interpreter_.Run(*kept.plan, graph, leaves);
    ++runtime::Runtime::Get().counters().planned;
    return roots;
  } catch (const std::exception& error) {
    if (IsTransient(error)) throw;
  } catch (const runtime::StepFailure&) {
  }
  // The calls of ATen say what is wrong.
  kept.plan.reset();
  return std::nullopt;
}

ir::Ref<runtime::Plan> PyExecutor::MakePlan(const ir::Graph& graph,
                                            const interpreter::Trace& trace) {
  auto kept = ir::MakeRef<KeptPlan>();
  kept->num_lowerings = num_lowerings_;
  if (trace.is_plain() && graph.mesh == 0) {
    kept->plan = interpreter_.MakePlan(graph, trace);
    ++runtime::Runtime::Get().counters().plans;
  }
  return kept;
}

void PyExecutor::NoteRun(const ir::Graph& graph, std::chrono::steady_clock::time_point start,
                         bool is_planned) {
  const uint64_t structure = graph.structure();
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start - compiling_;
  if (interpreted_graphs_.Note(structure, seconds.count())) return;
  // No code of Python, which may raise: leaves may have been overwritten.
  if (is_planned) return interpreted_graphs_.Count(seconds.count());
  const size_t num_ops = graph.nodes.size() - graph.leaves.size();
  interpreted_graphs_.Add(structure, num_ops, seconds.count(),
                          note_interpreted_(num_ops, seconds.count(), structure, Describer(graph)));
}

// Below the sync lock, without which no operand is dropped.
ir::Ref<runtime::Executable> PyExecutor::ExecutableOf(const ir::Node& call)
    LITE_NO_THREAD_SAFETY_ANALYSIS {
  std::vector<const ir::Shape*> operands;
  for (const ir::Value& operand : call.operands()) operands.push_back(operand.shape());
  const auto num_scalars = static_cast<uint32_t>(call.scalars().size());
  std::vector<uint64_t> key = ir::KeyOfCall(call.signature(), operands, num_scalars);
  if (auto executable = cache_->Find(key)) return executable;
  std::vector<uint32_t> sources(operands.size());
  sources.push_back(call.source);
  const auto start = std::chrono::steady_clock::now();
  auto executable = Compiled(DescribeKey(key, sources), /*structure=*/py::none());
  compiling_ += std::chrono::steady_clock::now() - start;
  runtime::Runtime::Get().counters().CountCompiled(executable->is_loaded());
  cache_->Insert(ir::KeptKey(std::move(key)), executable);
  return executable;
}

// Called without Python's lock.
std::vector<at::Tensor> PyExecutor::RunLowering(const ir::Node& call,
                                                std::span<const at::Tensor> operands) {
  const Untraced python;
  const ir::Signature& signature = call.signature();
  const ir::Ref<runtime::Executable> executable = ExecutableOf(call);
  std::vector<py::object> owned;
  for (const at::Tensor& operand : operands) owned.push_back(Uploaded(operand));
  if (!call.scalars().empty()) owned.push_back(PackScalars(call.scalars()));
  std::vector<PyObject*> arguments;
  for (const py::object& argument : owned) arguments.push_back(argument.ptr());
  has_run_program_ = true;
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

py::handle PyExecutor::ArrayOf(ir::Buffer* buffer) const {
  auto& ours = static_cast<PyBuffer&>(*buffer);
  if (!ours.array()) ours.SetArray(Uploaded(ours.tensor()));
  return ours.array();
}

py::object PyExecutor::Uploaded(const at::Tensor& tensor) const {
  const py::capsule owner(new at::Tensor(tensor),
                          [](void* owned) { delete static_cast<at::Tensor*>(owned); });
  const py::object dtype = dtypes_[py::int_(static_cast<int>(tensor.scalar_type()))];
  return upload_(py::array(py::dtype(dtype), tensor.sizes(), tensor.const_data_ptr(), owner));
}

std::unordered_map<uint64_t, runtime::Tiering::Past> PyExecutor::PastCosts() {
  const Untraced python;
  std::unordered_map<uint64_t, runtime::Tiering::Past> past;
  for (const py::handle row : past_costs_()) {
    const auto [structure, spent, processes] = row.cast<std::tuple<uint64_t, double, uint32_t>>();
    past[structure] = {spent, processes};
  }
  return past;
}

ir::Ref<runtime::Executable> PyExecutor::Load(const ir::Graph& graph) {
  const Untraced python;
  const auto [steps, roots] = DescribeGraph(graph);
  const py::object loaded = load_(steps, roots, graph.structure());
  if (loaded.is_none()) return {};
  return ir::Ref<runtime::Executable>::Take(new PyExecutable(loaded));
}

ir::Ref<runtime::Executable> PyExecutor::Compile(const ir::Graph& graph) {
  device::ReleaseKeptBlocks();  // XLA needs the memory more.
  const Untraced python;
  return Compiled(DescribeGraph(graph), py::int_(graph.structure()));
}

ir::Ref<runtime::Compilation> PyExecutor::StartCompile(const ir::Graph& graph) {
  const Untraced python;
  const auto [steps, roots] = DescribeGraph(graph);
  return ir::Ref<runtime::Compilation>::Take(
      new PyCompilation(start_compile_(steps, roots, graph.structure())));
}

ir::Ref<runtime::Executable> PyExecutor::Compiled(const Description& graph,
                                                  const py::object& structure) const {
  return NamingSteps([&] {
    return ir::Ref<runtime::Executable>::Take(
        new PyExecutable(compile_(graph.first, graph.second, structure)));
  });
}

std::vector<ir::Ref<ir::Buffer>> PyExecutor::Execute(runtime::Executable& executable,
                                                     const ir::Graph& graph) {
  const Untraced python;
  ReleaseDropped();
  const auto& ours = static_cast<const PyExecutable&>(executable);
  MoveLeaves(graph, ours.leaf_placements());
  std::vector<PyObject*> arguments;
  arguments.reserve(graph.leaves.size() + 1);
  for (size_t i = 0; i < graph.leaves.size(); ++i) {
    arguments.push_back(ArrayOf(graph.data(i)).ptr());
  }
  std::vector<py::object> copies;
  for (const uint32_t leaf : graph.copied_leaves) {
    copies.push_back(copy_(py::handle(arguments[leaf])));
    arguments[leaf] = copies.back().ptr();
  }
  py::object scalars;
  if (!graph.scalars.empty()) {
    scalars = PackScalars(graph.scalars);
    arguments.push_back(scalars.ptr());
  }
  const DeferredInterrupts deferred;
  has_run_program_ = true;
  const py::sequence returned = ours.Call(arguments);
  device::EndBlockPeriod();
  std::vector<ir::Ref<ir::Buffer>> results;
  results.reserve(graph.roots.size());
  for (py::handle array : returned) {
    const size_t i = results.size();
    const bool is_on_mesh = !ours.root_placements().empty();
    results.push_back(ir::Ref<ir::Buffer>::Take(
        new PyBuffer(py::reinterpret_borrow<py::object>(array), graph.roots[i].shape(),
                     is_on_mesh ? ours.root_placements()[i] : ir::kOneDevice, ours.number())));
  }
  return results;
}

// Puts data where a program takes it: what was on one device when the program was recorded is
// needed on all. It stays there.
void PyExecutor::MoveLeaves(const ir::Graph& graph, const std::vector<ir::Placement>& placements) {
  for (size_t i = 0; i < placements.size(); ++i) {
    auto& buffer = static_cast<PyBuffer&>(*graph.data(i));
    if (buffer.placement() == placements[i]) continue;
    buffer.Move(place_(ArrayOf(&buffer), placements[i]), placements[i]);
  }
}

ir::Ref<ir::Buffer> PyExecutor::Upload(const ir::Shape* shape, const void* data) {
  CheckUsable();
  auto buffer = BufferOf(CopyOf(data, shape));
  const Untraced python;
  if (placement_of_uploads_.is_none()) return buffer;
  const auto placement = placement_of_uploads_(shape->dims()).cast<ir::Placement>();
  return placement == ir::kOneDevice ? buffer : Placed(shape, std::move(buffer), placement);
}

ir::Ref<ir::Buffer> PyExecutor::Zeros(const ir::Shape* shape) {
  const at::Tensor zeros = Empty(shape);
  std::memset(zeros.mutable_data_ptr(), 0, zeros.nbytes());
  return BufferOf(zeros);
}

ir::Ref<ir::Buffer> PyExecutor::Placed(const ir::Shape* shape, ir::Ref<ir::Buffer> buffer,
                                       ir::Placement placement) {
  const Untraced python;
  return ir::Ref<ir::Buffer>::Take(
      new PyBuffer(place_(ArrayOf(buffer.get()), placement), shape, placement));
}

ir::Ref<ir::Buffer> PyExecutor::BufferOf(at::Tensor tensor) const {
  // numpy, which passes data to jax, has at most this many dimensions, and would report it only
  // when a graph needs the array.
  constexpr int64_t kMostDims = 64;
  if (tensor.dim() > kMostDims) {
    throw std::runtime_error("a tensor on jax has at most 64 dimensions, and this one has " +
                             std::to_string(tensor.dim()) + ".");
  }
  const Untraced python;
  ReleaseDropped();
  auto buffer = ir::Ref<ir::Buffer>::Take(new PyBuffer(std::move(tensor)));
  // A device with memory of its own gets the data at once.
  if (!HasHostMemory()) ArrayOf(buffer.get());
  return buffer;
}

void PyExecutor::Download(ir::Buffer& buffer, void* data, size_t num_bytes) {
  const Untraced python;
  ReleaseDropped();
  const HostData source = DataOf(static_cast<const PyBuffer&>(buffer));
  if (source.num_bytes != num_bytes) {
    throw std::logic_error("a buffer of " + std::to_string(source.num_bytes) +
                           " bytes belongs to a tensor of " + std::to_string(num_bytes) + ".");
  }
  std::memcpy(data, source.start, num_bytes);
  if (has_run_program_) report_();
}

void PyExecutor::AwaitAll() {
  const Untraced python;
  ReleaseDropped();
  const py::module_ jax = py::module_::import("jax");
  // jax does not order executions, so waiting for the last one would not suffice.
  for (const py::handle array : jax.attr("live_arrays")()) {
    if (!array.attr("is_deleted")().cast<bool>()) array.attr("block_until_ready")();
  }
  report_();
}

void PyExecutor::Lock(ir::Mutex& mutex) {
  if (PyGILState_Check() == 0) {
    mutex.lock();
    return;
  }
  const py::gil_scoped_release no_gil;
  mutex.lock();
}

}  // namespace torch_xla_lite::python
