#include "torch_xla_lite/csrc/python/executor.h"

#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>

#include <atomic>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "torch_xla_lite/csrc/device/block_allocator.h"
#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/placement.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/python/buffer.h"
#include "torch_xla_lite/csrc/python/deferred_interrupts.h"
#include "torch_xla_lite/csrc/python/description.h"
#include "torch_xla_lite/csrc/python/dropped.h"
#include "torch_xla_lite/csrc/python/executable.h"
#include "torch_xla_lite/csrc/python/untraced.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"

namespace py = pybind11;

namespace torch_xla_lite::python {
namespace {

std::atomic<bool (*)()> in_kernel = nullptr;
thread_local bool is_compiler_thread = false;

// The class of an exception of Python, else nullptr.
PyObject* PythonType(const std::exception& error) {
  if (const auto* ours = dynamic_cast<const py::error_already_set*>(&error))
    return ours->type().ptr();
  const auto* torchs = dynamic_cast<const python_error*>(&error);
  return torchs == nullptr ? nullptr : torchs->type;
}

bool IsOf(PyObject* type, PyObject* base) {
  if (type == nullptr) return false;
  const py::gil_scoped_acquire gil;
  return PyErr_GivenExceptionMatches(type, base) != 0;
}

}  // namespace

PyExecutor::PyExecutor(const py::object& compiler)
    : compile_(compiler.attr("compile")),
      load_(compiler.attr("load")),
      past_costs_(compiler.attr("past_costs")),
      start_compile_(compiler.attr("start_compile")),
      report_(compiler.attr("report")),
      arrays_(compiler),
      interpreter_(compiler, &arrays_) {
  UseInThisProcess();
}

PyExecutor& PyExecutor::Get() {
  return static_cast<PyExecutor&>(runtime::Runtime::Get().executor());
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
  return type != nullptr && (!IsOf(type, PyExc_Exception) || IsOf(type, PyExc_Warning));
}

bool PyExecutor::IsTransient(const std::exception& error) const {
  return Executor::IsTransient(error) || IsInterrupt(error) ||
         IsOf(PythonType(error), PyExc_MemoryError);
}

bool PyExecutor::IsNotImplemented(const std::exception& error) const {
  return IsOf(PythonType(error), PyExc_NotImplementedError);
}

// In a forked process small graphs would run, and the first large one would hang, waiting for
// threads that were not forked.
void PyExecutor::CheckUsable() const {
  if (!IsForked()) return;
  throw std::runtime_error(
      "device jax cannot be used in a forked process: XLA's threads were not forked.\n"
      "Start a new process instead:  torch.multiprocessing.set_start_method('spawn')");
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
  return Compiled(compile_, DescribeGraph(graph), py::int_(graph.structure()));
}

ir::Ref<runtime::Compilation> PyExecutor::StartCompile(const ir::Graph& graph) {
  const Untraced python;
  const auto [steps, roots] = DescribeGraph(graph);
  return ir::Ref<runtime::Compilation>::Take(
      new PyCompilation(start_compile_(steps, roots, graph.structure())));
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
    arguments.push_back(arrays_.Of(graph.data(i)).ptr());
  }
  std::vector<py::object> copies;
  for (const uint32_t leaf : graph.copied_leaves) {
    copies.push_back(arrays_.Copied(arguments[leaf]));
    arguments[leaf] = copies.back().ptr();
  }
  py::object scalars;
  if (!graph.scalars.empty()) {
    scalars = PackScalars(graph.scalars);
    arguments.push_back(scalars.ptr());
  }
  KeepClient();
  const DeferredInterrupts deferred;
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
    ir::Buffer* const buffer = graph.data(i);
    if (buffer->placement() != placements[i]) arrays_.Move(buffer, placements[i]);
  }
}

ir::Ref<ir::Buffer> PyExecutor::Upload(const ir::Shape* shape, const void* data) {
  CheckUsable();
  auto buffer = arrays_.BufferOf(CopyOf(data, shape));
  const Untraced python;
  if (placement_of_uploads_.is_none()) return buffer;
  const auto placement = placement_of_uploads_(shape->dims()).cast<ir::Placement>();
  return placement == ir::kOneDevice ? buffer : arrays_.Placed(shape, std::move(buffer), placement);
}

ir::Ref<ir::Buffer> PyExecutor::Zeros(const ir::Shape* shape) {
  const at::Tensor zeros = Empty(shape);
  std::memset(zeros.mutable_data_ptr(), 0, zeros.nbytes());
  return arrays_.BufferOf(zeros);
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
  if (PyExecutable::has_run()) report_();
}

const void* PyExecutor::DataOnHost(const ir::Buffer& buffer) {
  const auto& ours = static_cast<const PyBuffer&>(buffer);
  return ours.array() ? nullptr : ours.tensor().const_data_ptr();
}

void PyExecutor::AwaitAll() {
  const Untraced python;
  ReleaseDropped();
  // Before jax is imported, nothing was executed.
  if (!IsJaxImported()) return;
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
