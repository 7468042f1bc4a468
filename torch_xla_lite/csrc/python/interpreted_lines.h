// How often graphs were interpreted, by the line of the program that needed a value.
//
//   InterpretedLines lines(is_library);         // is_library(file) -> bool
//   lines.Note(/*num_ops=*/3, /*seconds=*/1e-5);
//   lines.Rows();                               // [(file, line, function, graphs, ops, seconds)]
//
// A program that reads a value in a loop notes a graph each time, so the line is looked up by the
// instruction of the innermost frame that belongs to no library, without calling Python. Python's
// lock guards it.

#ifndef TORCH_XLA_LITE_CSRC_PYTHON_INTERPRETED_LINES_H_
#define TORCH_XLA_LITE_CSRC_PYTHON_INTERPRETED_LINES_H_

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace torch_xla_lite::python {

class InterpretedLines {
 public:
  explicit InterpretedLines(pybind11::function is_library) : is_library_(std::move(is_library)) {}

  void Note(size_t num_ops, double seconds);
  pybind11::list Rows() const;

 private:
  using Place = std::tuple<std::string, int, std::string>;
  struct Counts {
    uint64_t graphs = 0;
    uint64_t ops = 0;
    double seconds = 0;
  };
  struct Code {
    pybind11::object owner;
    bool is_library;
    std::map<int, Counts*> by_instruction;
  };

  Counts& CountsHere();
  Code& CodeOf(PyFrameObject* frame);

  static constexpr size_t kMostCodes = 4096;

  pybind11::function is_library_;
  std::map<Place, Counts> lines_;
  // By address; they stay alive.
  std::unordered_map<PyObject*, Code> codes_;
};

}  // namespace torch_xla_lite::python

#endif  // TORCH_XLA_LITE_CSRC_PYTHON_INTERPRETED_LINES_H_
