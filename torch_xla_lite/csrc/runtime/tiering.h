// Tiering: whether a graph is interpreted once more or compiled.
//
//   Tiering tiering;
//   if (tiering.IsHot(graph)) {
//     executable = Compile(graph);
//     tiering.NoteCompiled(graph);
//   } else {
//     Interpret(graph);
//   }
//
// A graph is hot when it comes back. But a program may have a variant of it for each length of a
// text, and for each path that its branches and loops take; few of them come back often. Graphs
// with the same kinds of ops and as many results count as variants. Once there are m of them, and n
// were compiled, the next one must have been interpreted (1 + m / 8) * 2^n times. So whatever the
// data is, the number of compiled variants grows with the logarithm of the number of graphs that
// run.
//
// Counts decide, not clocks, so that a program computes the same bits in each run. Not thread-safe.

#ifndef TORCH_XLA_LITE_CSRC_RUNTIME_TIERING_H_
#define TORCH_XLA_LITE_CSRC_RUNTIME_TIERING_H_

#include <cstdint>
#include <unordered_map>

#include "torch_xla_lite/csrc/ir/graph.h"

namespace torch_xla_lite::runtime {

class Tiering {
 public:
  // Counts one more run of the graph unless it is hot. It stays hot if it cannot be compiled.
  bool IsHot(const ir::Graph& graph);
  // Counts one more compiled variant of the graph.
  void NoteCompiled(const ir::Graph& graph);
  void Clear();

 private:
  struct Variants {
    uint32_t interpreted = 0;
    uint32_t compiled = 0;
  };

  // By hashes: graphs with the same hash count together, which changes when they are compiled and
  // nothing else.
  std::unordered_map<uint64_t, uint32_t> interpreted_;
  std::unordered_map<uint64_t, Variants> variants_;
};

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_TIERING_H_
