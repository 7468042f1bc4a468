#include "torch_xla_lite/csrc/runtime/tiering.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/hash.h"
#include "torch_xla_lite/csrc/ir/key.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/ir/signature.h"

namespace torch_xla_lite::runtime {
namespace {

// After so many variants, each of them is interpreted once more before it is compiled.
constexpr uint32_t kVariantsForOneRun = 8;

// Keeps the number of runs below 2^64.
constexpr uint32_t kMostDoublings = 20;

// A graph is small if its ops take and give fewer elements on average.
constexpr uint64_t kElementsPerOp = uint64_t{1} << 15;

constexpr uint64_t kRunsOfSmallGraphs = 1024;

// The same for all variants, whatever their ops compute with, and how often they run.
uint64_t HashOfVariants(const ir::Description& graph) {
  std::set<uint64_t> kinds;
  for (const ir::Step& step : graph.steps) {
    if (step.signature != nullptr) kinds.insert(std::hash<std::string>()(step.signature->op));
  }
  return ir::HashWords(std::vector<uint64_t>(kinds.begin(), kinds.end()), graph.roots.size());
}

uint64_t NumElements(const ir::Shape* shape) {
  return shape == nullptr ? 0 : static_cast<uint64_t>(shape->NumElements());
}

bool IsSmall(const ir::Description& graph) {
  uint64_t ops = 0;
  uint64_t elements = 0;
  for (const ir::Step& step : graph.steps) {
    if (step.signature == nullptr) continue;
    ++ops;
    for (const ir::Shape* shape : step.signature->outputs) elements += NumElements(shape);
    for (const ir::Position operand : step.operands) {
      const ir::Step& source = graph.steps[operand.step];
      elements += NumElements(
          source.signature == nullptr ? source.leaf : source.signature->outputs[operand.output]);
    }
  }
  return elements < ops * kElementsPerOp;
}

}  // namespace

bool Tiering::IsHot(const ir::Graph& graph, bool is_waited_for) {
  const auto [found, is_new] = runs_.try_emplace(ir::HashWords(ir::StructureOf(graph.key)));
  Runs& runs = found->second;
  if (is_new) {
    const ir::Description description = ir::Describe(graph.key);
    runs.is_small = IsSmall(description);
    runs.variants = HashOfVariants(description);
  }
  Variants& variants = variants_[runs.variants];
  const uint64_t wanted = (runs.is_small && is_waited_for ? kRunsOfSmallGraphs : 1) *
                              (1 + variants.interpreted / kVariantsForOneRun)
                          << std::min(variants.compiled, kMostDoublings);
  if (runs.done >= wanted) return true;
  if (runs.done++ == 0) ++variants.interpreted;
  return false;
}

void Tiering::NoteCompiled(const ir::Graph& graph) {
  ++variants_[HashOfVariants(ir::Describe(graph.key))].compiled;
}

void Tiering::Clear() {
  runs_.clear();
  variants_.clear();
}

}  // namespace torch_xla_lite::runtime
