#include "torch_xla_lite/csrc/runtime/tiering.h"

#include <cmath>
#include <utility>

#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/key.h"

namespace torch_xla_lite::runtime {

Tiering::Decision Tiering::Decide(const ir::Graph& graph) {
  const uint64_t structure = ir::StructureHash(graph.key);
  Runs* runs = runs_.Find(structure, [](const Runs&) { return true; });
  if (runs == nullptr) {
    runs = runs_.Insert(structure, ir::MakeRef<Runs>(model_.Of(ir::Describe(graph.key))));
  }
  const Costs& costs = runs->costs;
  const bool pays = costs.interpretation > costs.execution;
  if (std::isinf(costs.interpretation) || (pays && runs->spent >= costs.compilation)) {
    compiled_ += costs.compilation;
    return Decision::kCompile;
  }
  interpreted_ += costs.interpretation;
  if (!pays) return Decision::kInterpret;
  const bool seeks = runs->spent >= costs.load && !std::exchange(runs->was_sought, true);
  runs->spent += costs.interpretation;
  return seeks ? Decision::kLoad : Decision::kInterpret;
}

void Tiering::Clear() {
  runs_.Clear();
  interpreted_ = compiled_ = 0;
}

}  // namespace torch_xla_lite::runtime
