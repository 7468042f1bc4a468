#include "torch_xla_lite/csrc/python/executable.h"

#include <pybind11/stl.h>

#include <exception>

#include "torch_xla_lite/csrc/python/untraced.h"

namespace py = pybind11;

namespace torch_xla_lite::python {
namespace {

// By the numbers of executables. Guarded by Python's lock.
std::vector<std::pair<uint64_t, double>>& AllExecutions() {
  static auto* executions = new std::vector<std::pair<uint64_t, double>>;
  return *executions;
}

// Turns what the compiler says of a step (graph_errors.py, `blaming`) into a StepFailure.
template <typename Work>
auto NamingSteps(Work work) {
  try {
    return work();
  } catch (py::error_already_set& error) {
    const py::object steps = py::getattr(error.value(), "_torch_xla_lite_steps", py::none());
    if (steps.is_none()) throw;
    throw runtime::StepFailure{steps.cast<std::vector<uint32_t>>(), std::current_exception()};
  }
}

}  // namespace

std::vector<std::pair<uint64_t, double>> Executions() { return AllExecutions(); }

void NoteSeconds(size_t number, double seconds) { AllExecutions()[number].second += seconds; }

PyExecutable::PyExecutable(const py::tuple& compiled)
    : callable_(compiled[0]),
      number_(compiled[1].attr("number").cast<size_t>()),
      is_loaded_(compiled[1].attr("loaded").cast<bool>()) {
  const py::object placements = compiled[1].attr("placements");
  if (!placements.is_none()) {
    std::tie(leaf_placements_, root_placements_) =
        placements.cast<decltype(std::pair(leaf_placements_, root_placements_))>();
  }
  if (AllExecutions().size() <= number_) AllExecutions().resize(number_ + 1);
}

py::sequence PyExecutable::Call(const std::vector<PyObject*>& arguments) const {
  has_run_ = true;
  const Stopwatch stopwatch;
  auto returned = NamingSteps([&] {
    auto result = py::reinterpret_steal<py::object>(
        PyObject_Vectorcall(callable_.ptr(), arguments.data(), arguments.size(), nullptr));
    if (!result) throw py::error_already_set();
    return result;
  });
  ++AllExecutions()[number_].first;
  NoteSeconds(number_, stopwatch.seconds());
  return returned;
}

ir::Ref<runtime::Executable> Compiled(const py::function& compile, const Description& graph,
                                      const py::object& structure) {
  return NamingSteps([&] {
    return ir::Ref<runtime::Executable>::Take(
        new PyExecutable(compile(graph.first, graph.second, structure)));
  });
}

PyCompilation::~PyCompilation() {
  const Untraced python;
  future_.attr("cancel")();
  future_ = {};
}

bool PyCompilation::IsDone() {
  const Untraced python;
  return future_.attr("done")().cast<bool>();
}

ir::Ref<runtime::Executable> PyCompilation::Result() {
  const Untraced python;
  if (!future_.attr("exception")().is_none()) return {};
  return ir::Ref<runtime::Executable>::Take(new PyExecutable(future_.attr("result")()));
}

}  // namespace torch_xla_lite::python
