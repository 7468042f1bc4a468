#include "torch_xla_lite/csrc/python/interpreted_lines.h"

#include <utility>

namespace py = pybind11;

namespace torch_xla_lite::python {

void InterpretedLines::Note(size_t num_ops, double seconds) {
  Counts& counts = CountsHere();
  ++counts.graphs;
  counts.ops += num_ops;
  counts.seconds += seconds;
}

InterpretedLines::Counts& InterpretedLines::CountsHere() {
  PyFrameObject* const frame = PyEval_GetFrame();
  if (frame == nullptr) return lines_[place_().cast<Place>()];
  auto code =
      py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  const std::pair key(code.ptr(), PyFrame_GetLasti(frame));
  if (const auto found = known_.find(key); found != known_.end()) return *found->second.counts;
  const Place place = place_().cast<Place>();
  Counts& counts = lines_[place];
  // Code of a library is called from many lines.
  if (std::get<0>(place) == code.attr("co_filename").cast<std::string>()) {
    if (known_.size() >= kMostKnown) known_.clear();
    known_.emplace(key, Known{std::move(code), &counts});
  }
  return counts;
}

py::list InterpretedLines::Rows() const {
  py::list rows;
  for (const auto& [place, counts] : lines_) {
    const auto& [file, line, function] = place;
    rows.append(py::make_tuple(file, line, function, counts.graphs, counts.ops, counts.seconds));
  }
  return rows;
}

}  // namespace torch_xla_lite::python
