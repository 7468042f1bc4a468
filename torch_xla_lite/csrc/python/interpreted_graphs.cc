#include "torch_xla_lite/csrc/python/interpreted_graphs.h"

#include <optional>
#include <utility>

#include "torch_xla_lite/csrc/python/deferred_interrupts.h"
#include "torch_xla_lite/csrc/python/description.h"

namespace py = pybind11;

namespace torch_xla_lite::python {

void InterpretedGraphs::Note(const ir::Graph& graph, double seconds, bool may_raise) {
  ++all_runs_;
  all_seconds_ += seconds;
  const uint64_t structure = graph.structure();
  const auto known = graphs_.find(structure);
  if (known != graphs_.end()) {
    ++known->second.runs;
    known->second.seconds += seconds;
    return;
  }
  std::optional<DeferredInterrupts> deferred;
  if (!may_raise) deferred.emplace();
  try {
    if (graphs_.size() == kMost) graphs_.clear();
    const size_t num_ops = graph.nodes.size() - graph.leaves.size();
    py::object place = note_interpreted_(num_ops, seconds, structure, Describer(graph));
    graphs_.emplace(structure, Graph{std::move(place), num_ops, /*runs=*/1, seconds});
  } catch (py::error_already_set& error) {
    if (may_raise) throw;
    error.discard_as_unraisable("an interpreted graph");
  }
}

py::list InterpretedGraphs::Rows() const {
  py::list rows;
  uint64_t other_runs = all_runs_;
  double other_seconds = all_seconds_;
  for (const auto& [structure, graph] : graphs_) {
    rows.append(py::make_tuple(structure, graph.place, graph.num_ops, graph.runs, graph.seconds));
    other_runs -= graph.runs;
    other_seconds -= graph.seconds;
  }
  if (other_runs > 0) rows.append(py::make_tuple(py::none(), "", 0, other_runs, other_seconds));
  return rows;
}

}  // namespace torch_xla_lite::python
