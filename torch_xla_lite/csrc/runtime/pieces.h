// Pieces: what varies between graphs that are otherwise the same, apart from what stays.
//
//   Pieces pieces(&model);
//   const std::vector<uint8_t> of_steps = pieces.Of(graph);
//   // empty, or for each step 0, 1 or 2: computed before what stays, as part of it, or after it
//
// A loop may record in each round the same calls on the same shapes, and a few calls on something
// that grows: a token that is appended to a text, a list of masks. As one graph it never comes
// back. Computed apart, what stays has a key of its own, so it is planned, compiled and loaded.
//
// A call varies unless two of the graphs just before had its signature. Where a graph is divided,
// calls that vary go on doing so. What stays is other calls: as many as fit between two sets of
// calls that vary, or behind all of them. A graph is divided if another one before had the same
// calls that stay, and if these cost enough by the model of costs. Nothing else decides, so a
// program is divided in the same way in each run. Not thread-safe.

#ifndef TORCH_XLA_LITE_CSRC_RUNTIME_PIECES_H_
#define TORCH_XLA_LITE_CSRC_RUNTIME_PIECES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/recent_table.h"
#include "torch_xla_lite/csrc/ir/record_lock.h"
#include "torch_xla_lite/csrc/ir/ref.h"
#include "torch_xla_lite/csrc/ir/thread_annotations.h"
#include "torch_xla_lite/csrc/runtime/costs.h"

namespace torch_xla_lite::ir {
struct Description;
struct Signature;
}  // namespace torch_xla_lite::ir

namespace torch_xla_lite::runtime {

class Pieces {
 public:
  static constexpr uint8_t kBefore = 0;
  static constexpr uint8_t kStays = 1;
  static constexpr uint8_t kAfter = 2;
  static constexpr uint8_t kLeaf = 3;
  // Computed in each piece that needs it: small calls on leaves and roots.
  static constexpr uint8_t kWhereNeeded = 4;

  explicit Pieces(const CostModel* model) : model_(*model) {}

  // The piece of each step of a graph, which has no executable and is then run. Empty if it runs as
  // a whole.
  std::vector<uint8_t> Of(const ir::Graph& graph);
  void Clear();

 private:
  // Of a call: how many of the graphs just before have had it, as far as that matters. What grows
  // by one may have in a graph the size that something else had in the one before.
  static constexpr uint32_t kStaying = 2;
  static constexpr uint32_t kVarying = 3;  // In a graph that was divided, whenever that was.
  // What was not met in so many graphs begins again.
  static constexpr uint32_t kRecent = 16;

  uint32_t MeetingsOf(const ir::Signature& call) const;
  bool Varies(const ir::Signature& call) const;
  std::vector<uint8_t> Divided(const ir::Graph& of);

  // Calls that stay, in graphs that vary.
  struct Staying : ir::RefCounted {
    uint64_t last_graph = 0;
    uint32_t graphs = 0;
  };

  // Two more pieces take some 30 us.
  static constexpr double kLeastCost = 200;
  static constexpr double kLeastPart = 0.25;  // Of what the graph costs.
  static constexpr uint32_t kGraphsBefore = 1;
  static constexpr size_t kMost = 1024;

  const CostModel& model_;
  ir::RecentTable<Staying> staying_{kMost};  // By a hash of the calls.
  // Signature::met is the number of the last graph that had the call, and in the lowest two bits
  // its meetings.
  uint32_t graph_ = kRecent + 1;
  uint32_t first_graph_ = kRecent + 1;
};

// What a piece computes, and what its roots refer to. To be dropped when it is computed, so that
// later pieces can overwrite it.
struct PieceRoots {
  std::vector<ir::Value> values;
  std::vector<ir::Root> roots;
};
// Of the pieces of a graph that was the last to be linearised, in order: its roots, and what a
// later piece needs.
std::array<PieceRoots, 3> RootsOfPieces(const ir::Graph& graph, std::span<const uint8_t> pieces,
                                        std::span<const ir::Root> roots)
    LITE_REQUIRES(ir::record_lock);

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_PIECES_H_
