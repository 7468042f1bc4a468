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
  auto frame = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* const raw = reinterpret_cast<PyFrameObject*>(frame.ptr());
    Code& code = CodeOf(raw);
    if (!code.is_library) {
      Counts*& counts = code.by_instruction[PyFrame_GetLasti(raw)];
      if (counts == nullptr) {
        counts =
            &lines_[{code.owner.attr("co_filename").cast<std::string>(), PyFrame_GetLineNumber(raw),
                     code.owner.attr("co_name").cast<std::string>()}];
      }
      return *counts;
    }
    frame = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(raw)));
  }
  return lines_[{}];
}

InterpretedLines::Code& InterpretedLines::CodeOf(PyFrameObject* frame) {
  auto code =
      py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  if (const auto found = codes_.find(code.ptr()); found != codes_.end()) return found->second;
  const bool is_library = is_library_(code.attr("co_filename")).cast<bool>();
  if (codes_.size() >= kMostCodes) codes_.clear();
  PyObject* const address = code.ptr();
  return codes_.emplace(address, Code{std::move(code), is_library, {}}).first->second;
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
