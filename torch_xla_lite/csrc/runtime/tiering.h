// Tiering: decides whether a graph is interpreted again or compiled.
//
//   Tiering tiering;
//   if (tiering.IsHot(graph, /*is_waited_for=*/true)) {
//     executable = Compile(graph);
//     tiering.NoteCompiled(graph);
//   } else {
//     Interpret(graph);
//   }
//
// A graph is hot when it comes back. There are two exceptions:
//
// * Small arrays. Compiling an op takes about 10 ms, whatever its arrays are, and for small ones a
//   compiled program is hardly faster than ATen's kernels. Where the ops of a graph take and give
//   fewer than 2^15 elements on average, it must have been interpreted 1,024 times, unless the
//   program does not wait for the compiler.
// * Variants. A program may have a variant of a graph for each length of a text, and for each path
//   that its branches and loops take; few of them come back often. Graphs with the same kinds of
//   ops and as many results count as variants. Once there are m of them, and n were compiled, the
//   next one must have been interpreted (1 + m / 8) * 2^n times as often. So whatever the data is,
//   the number of compiled variants grows with the logarithm of the number of graphs that run.
//
// Counts decide, not clocks, so that a program computes the same bits in each run. Not thread-safe.

#ifndef TORCH_XLA_LITE_CSRC_RUNTIME_TIERING_H_
#define TORCH_XLA_LITE_CSRC_RUNTIME_TIERING_H_

#include <cstdint>
#include <unordered_map>

namespace torch_xla_lite::ir {
struct Graph;
}  // namespace torch_xla_lite::ir

namespace torch_xla_lite::runtime {

class Tiering {
 public:
  // Counts one more run of the graph unless it is hot. It stays hot if it cannot be compiled.
  // is_waited_for: whether the program waits until it is compiled.
  bool IsHot(const ir::Graph& graph, bool is_waited_for);
  // Counts one more compiled variant of the graph.
  void NoteCompiled(const ir::Graph& graph);
  void Clear();

 private:
  struct Variants {
    uint32_t interpreted = 0;
    uint32_t compiled = 0;
  };
  struct Runs {
    uint64_t done = 0;
    bool is_small = false;
    uint64_t variants = 0;  // Their hash.
  };

  // By hashes: graphs with the same hash count together, which changes when they are compiled and
  // nothing else.
  std::unordered_map<uint64_t, Runs> runs_;
  std::unordered_map<uint64_t, Variants> variants_;
};

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_TIERING_H_
