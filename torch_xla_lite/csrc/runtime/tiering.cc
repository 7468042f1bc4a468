#include "torch_xla_lite/csrc/runtime/tiering.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/hash.h"

namespace torch_xla_lite::runtime {
namespace {

// No graph is interpreted more than 2^20 times.
constexpr uint32_t kMostDoublings = 20;

// The same for graphs with the same ops on the same values, whatever the shapes and the constant
// arguments are, which often follow from shapes.
uint64_t HashOfOps(const ir::Graph& graph) {
  std::vector<uint64_t> words;
  for (const ir::Step& step : ir::Describe(graph.key).steps) {
    if (step.signature == nullptr) continue;
    words.push_back(std::hash<std::string>()(step.signature->op));
    for (const ir::Position& operand : step.operands) {
      words.push_back(uint64_t{operand.step} << 32 | operand.output);
    }
  }
  return ir::HashWords(words);
}

}  // namespace

bool Tiering::IsHot(const ir::Graph& graph) {
  uint32_t& interpreted = interpreted_[ir::HashWords(ir::StructureOf(graph.key))];
  const uint32_t variants = compiled_variants_[HashOfOps(graph)];
  const bool is_hot = interpreted >= uint32_t{1} << std::min(variants, kMostDoublings);
  if (!is_hot) ++interpreted;
  return is_hot;
}

void Tiering::NoteCompiled(const ir::Graph& graph) { ++compiled_variants_[HashOfOps(graph)]; }

void Tiering::Clear() {
  interpreted_.clear();
  compiled_variants_.clear();
}

}  // namespace torch_xla_lite::runtime
