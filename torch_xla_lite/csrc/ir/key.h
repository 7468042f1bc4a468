// The key of a graph: a sequence of words that determines what is compiled.
//
// Two graphs with equal keys do the same computation on different data: they may share one
// executable. The key is also the description that the compiler reads (see Step), so the compiler
// cannot depend on anything that is missing from the key.
//
//   Graph graph = Linearize(roots);                       // ir/graph.h
//   for (const Step& step : graph.description().steps)    // leaves and calls, in post-order
//   StructureOf(graph.key);                               // equal if only donation differs
//
// The words: a leaf is its shape's address with the lowest bit set (and the second bit if it is
// donated). An op call is its signature's address, then its counts, then its operands. A null word
// ends the steps; the roots follow. In a graph on a mesh (placement.h) another word ends them; the
// placements of the leaves follow, and then each root with the placement of its holder.

#ifndef TORCH_XLA_LITE_CSRC_IR_KEY_H_
#define TORCH_XLA_LITE_CSRC_IR_KEY_H_

#include <cstdint>
#include <span>
#include <vector>

#include "torch_xla_lite/csrc/ir/placement.h"
#include "torch_xla_lite/csrc/ir/ref.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/ir/signature.h"

namespace torch_xla_lite::ir {

inline constexpr uint64_t kLeafBit = 1;
inline constexpr uint64_t kDonatedBit = 2;
inline constexpr uint64_t kEnd = 0;
inline constexpr uint64_t kEndOnMesh = 2;  // No address, and no leaf.

// The position of a value in a graph: the step that produces it, and the index of the result.
struct Position {
  uint32_t step;
  uint32_t output;
};

inline uint64_t WordOf(Position position) {
  return uint64_t{position.step} << 32 | position.output;
}

inline uint64_t WordOfLeaf(const Shape* shape) {
  return reinterpret_cast<uint64_t>(shape) | kLeafBit;
}

inline uint64_t CountsOf(size_t num_operands, size_t num_scalars) {
  return uint64_t{num_operands} << 32 | num_scalars;
}

// kWrite: a call that writes through a view: (base, value of the view) -> new base.
enum class StepKind : uint8_t { kLeaf, kCall, kWrite };

// One line of a graph, as its key describes it.
struct Step {
  StepKind kind = StepKind::kLeaf;
  bool donated = false;  // Of a leaf.
  const Shape* leaf = nullptr;
  // Of a call:
  const Signature* signature = nullptr;
  std::span<const Position> operands;
  uint32_t num_scalars = 0;
};

// What a key says. Moved, never copied: its steps refer to it.
struct Description {
  Description() = default;
  Description(Description&&) = default;
  Description& operator=(Description&&) = default;

  std::vector<Step> steps;
  std::vector<Position> operands;  // Of all steps.
  std::vector<Position> roots;
  // Of a graph on a mesh, of each leaf and each root; otherwise empty.
  std::vector<Placement> leaf_placements;
  std::vector<Placement> root_placements;
};

const Shape* ShapeAt(const Description& graph, Position position);

// The key of a graph that is one call, whose operands are leaves and are not donated.
std::vector<uint64_t> KeyOfCall(const Signature& signature, std::span<const Shape* const> operands,
                                uint32_t num_scalars);

// A key that keeps alive what its words are the addresses of. Who keeps a key longer than its graph
// keeps this.
class KeptKey {
 public:
  explicit KeptKey(std::vector<uint64_t> words);
  std::span<const uint64_t> words() const { return words_; }

 private:
  std::vector<uint64_t> words_;
  std::vector<Ref<const Shape>> leaves_;
  std::vector<Ref<const Signature>> signatures_;
};

// Reads a key back. Of a graph: Graph::description().
Description Describe(std::span<const uint64_t> key);

// Where the words of the roots are: the index of the first, and the distance of each to the next.
struct RootWords {
  size_t first;
  size_t stride;
};
RootWords RootsOf(std::span<const uint64_t> key);

// For each leaf whether it is donated.
std::vector<bool> DonatedLeaves(std::span<const uint64_t> key);

// The part of a key that says what is computed: without donation and the order of roots, which
// depends on it.
std::vector<uint64_t> StructureOf(std::span<const uint64_t> key);
// A hash of it that outlives the graph: addresses may be used again, so it has numbers in their
// place.
uint64_t StructureHash(std::span<const uint64_t> key);

}  // namespace torch_xla_lite::ir

#endif  // TORCH_XLA_LITE_CSRC_IR_KEY_H_
