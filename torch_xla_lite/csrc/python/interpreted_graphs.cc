#include "torch_xla_lite/csrc/python/interpreted_graphs.h"

#include <utility>

namespace py = pybind11;

namespace torch_xla_lite::python {

bool InterpretedGraphs::Note(uint64_t structure, double seconds) {
  const auto graph = graphs_.find(structure);
  if (graph == graphs_.end()) return false;
  ++graph->second.runs;
  graph->second.seconds += seconds;
  Count(seconds);
  return true;
}

void InterpretedGraphs::Add(uint64_t structure, size_t num_ops, double seconds, py::object place) {
  if (graphs_.size() == kMost) graphs_.clear();
  graphs_.emplace(structure, Graph{std::move(place), num_ops, /*runs=*/1, seconds});
  Count(seconds);
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
