// How often graphs were interpreted, by the line of the program that needed a value.
//
//   InterpretedLines lines(place);              // place() -> (file, line, function)
//   lines.Note(/*num_ops=*/3, /*seconds=*/1e-5);
//   lines.Rows();                               // [(file, line, function, graphs, ops, seconds)]
//
// A program that reads a value in a loop notes a graph each time, so the line is looked up by the
// running frame's instruction, without calling Python. Python's lock guards it.

#ifndef TORCH_XLA_LITE_CSRC_PYTHON_INTERPRETED_LINES_H_
#define TORCH_XLA_LITE_CSRC_PYTHON_INTERPRETED_LINES_H_

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace torch_xla_lite::python {

class InterpretedLines {
 public:
  explicit InterpretedLines(pybind11::function place) : place_(std::move(place)) {}

  void Note(size_t num_ops, double seconds);
  pybind11::list Rows() const;

 private:
  using Place = std::tuple<std::string, int, std::string>;
  struct Counts {
    uint64_t graphs = 0;
    uint64_t ops = 0;
    double seconds = 0;
  };
  // Where a program is, if it is in its own code: an instruction, and its code, which stays alive.
  struct Known {
    pybind11::object code;
    Counts* counts;
  };

  Counts& CountsHere();

  static constexpr size_t kMostKnown = 4096;

  pybind11::function place_;
  std::map<Place, Counts> lines_;
  std::map<std::pair<PyObject*, int>, Known> known_;
};

}  // namespace torch_xla_lite::python

#endif  // TORCH_XLA_LITE_CSRC_PYTHON_INTERPRETED_LINES_H_
