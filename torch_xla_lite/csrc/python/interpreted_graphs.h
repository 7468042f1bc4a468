// What the runs of interpreted graphs took, for debug.report().
//
//   InterpretedGraphs graphs;
//   if (!graphs.Note(structure, seconds)) graphs.Add(structure, num_ops, seconds, place);
//   graphs.Rows();      // [(structure, place, ops, runs, seconds)]
//
// Python's lock guards it.

#ifndef TORCH_XLA_LITE_CSRC_PYTHON_INTERPRETED_GRAPHS_H_
#define TORCH_XLA_LITE_CSRC_PYTHON_INTERPRETED_GRAPHS_H_

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace torch_xla_lite::python {

class InterpretedGraphs {
 public:
  // Whether a graph has run, by the hash of its structure.
  bool Has(uint64_t structure) const { return graphs_.contains(structure); }
  // Counts a run of a graph, by the hash of its structure. False if the graph is new.
  bool Note(uint64_t structure, double seconds);
  // Adds a graph with its first run. place: the line of the program.
  void Add(uint64_t structure, size_t num_ops, double seconds, pybind11::object place);
  // Counts a run, without its graph.
  void Count(double seconds) {
    ++all_runs_;
    all_seconds_ += seconds;
  }
  // The graphs that are kept, and one without a structure for the runs of all others.
  pybind11::list Rows() const;
  void Clear() { graphs_.clear(); }

 private:
  struct Graph {
    pybind11::object place;
    size_t num_ops;
    uint64_t runs;
    double seconds;
  };

  static constexpr size_t kMost = 16'384;

  // By structure.
  std::unordered_map<uint64_t, Graph> graphs_;
  uint64_t all_runs_ = 0;
  double all_seconds_ = 0;
};

}  // namespace torch_xla_lite::python

#endif  // TORCH_XLA_LITE_CSRC_PYTHON_INTERPRETED_GRAPHS_H_
