// What the runs of interpreted graphs took, for debug.report().
//
//   InterpretedGraphs graphs(note_interpreted);
//   graphs.Note(graph, seconds, /*may_raise=*/true);
//   graphs.Rows();      // [(structure, place, ops, runs, seconds)]
//
// Python's lock guards it.

#ifndef TORCH_XLA_LITE_CSRC_PYTHON_INTERPRETED_GRAPHS_H_
#define TORCH_XLA_LITE_CSRC_PYTHON_INTERPRETED_GRAPHS_H_

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "torch_xla_lite/csrc/ir/graph.h"

namespace torch_xla_lite::python {

class InterpretedGraphs {
 public:
  // note_interpreted: that of compiler.Compiler.
  explicit InterpretedGraphs(pybind11::function note_interpreted)
      : note_interpreted_(std::move(note_interpreted)) {}

  // Counts a run of a graph. may_raise: otherwise what is wrong is printed, and an interrupt waits.
  void Note(const ir::Graph& graph, double seconds, bool may_raise);
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

  const pybind11::function note_interpreted_;
  // By structure.
  std::unordered_map<uint64_t, Graph> graphs_;
  uint64_t all_runs_ = 0;
  double all_seconds_ = 0;
};

}  // namespace torch_xla_lite::python

#endif  // TORCH_XLA_LITE_CSRC_PYTHON_INTERPRETED_GRAPHS_H_
