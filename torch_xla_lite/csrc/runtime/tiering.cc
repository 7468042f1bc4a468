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

// After so many variants, each of them is interpreted once more before it is compiled.
constexpr uint32_t kVariantsForOneRun = 8;

// Keeps the number of runs below 2^64.
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
  Variants& variants = variants_[HashOfVariants(graph)];
  const uint64_t wanted = uint64_t{1 + variants.interpreted / kVariantsForOneRun}
                          << std::min(variants.compiled, kMostDoublings);
  if (interpreted >= wanted) return true;
  if (interpreted++ == 0) ++variants.interpreted;
  return false;
}

void Tiering::NoteCompiled(const ir::Graph& graph) { ++variants_[HashOfVariants(graph)].compiled; }

void Tiering::Clear() {
  interpreted_.clear();
  variants_.clear();
}

}  // namespace torch_xla_lite::runtime
