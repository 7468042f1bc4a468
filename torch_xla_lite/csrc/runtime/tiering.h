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
// A graph is hot when it comes back. But graphs with the same ops and other shapes are variants of
// one program, and a program may have one for each length of a text. So once n variants were
// compiled, the next one must have been interpreted 2^n times: whatever sizes the data has, the
// number of compiled variants grows with the logarithm of the number of graphs that run.
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
  // Counts one more compiled variant of the graph's ops.
  void NoteCompiled(const ir::Graph& graph);
  void Clear();

 private:
  // By hashes: graphs with the same hash count together, which changes when they are compiled and
  // nothing else.
  std::unordered_map<uint64_t, uint32_t> interpreted_;
  std::unordered_map<uint64_t, uint32_t> compiled_variants_;
};

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_TIERING_H_
