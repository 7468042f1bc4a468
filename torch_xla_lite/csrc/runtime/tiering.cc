#include "torch_xla_lite/csrc/runtime/tiering.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/hash.h"

namespace torch_xla_lite::runtime {
namespace {

// No graph is interpreted more than 2^20 times.
constexpr uint32_t kMostDoublings = 20;

// The same for all variants, whatever their ops compute with, and how often they run.
uint64_t HashOfVariants(const ir::Graph& graph) {
  std::set<uint64_t> kinds;
  for (const ir::Step& step : ir::Describe(graph.key).steps) {
    if (step.signature != nullptr) kinds.insert(std::hash<std::string>()(step.signature->op));
  }
  return ir::HashWords(std::vector<uint64_t>(kinds.begin(), kinds.end()), graph.roots.size());
}

}  // namespace

bool Tiering::IsHot(const ir::Graph& graph) {
  uint32_t& interpreted = interpreted_[ir::HashWords(ir::StructureOf(graph.key))];
  const uint32_t variants = compiled_variants_[HashOfVariants(graph)];
  const bool is_hot = interpreted >= uint32_t{1} << std::min(variants, kMostDoublings);
  if (!is_hot) ++interpreted;
  return is_hot;
}

void Tiering::NoteCompiled(const ir::Graph& graph) { ++compiled_variants_[HashOfVariants(graph)]; }

void Tiering::Clear() {
  interpreted_.clear();
  compiled_variants_.clear();
}

}  // namespace torch_xla_lite::runtime
