#include "torch_xla_lite/csrc/runtime/tiering.h"

#include <cmath>
#include <utility>

#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/key.h"

namespace torch_xla_lite::runtime {

Tiering::Decision Tiering::Decide(
    const ir::Graph& graph, uint64_t structure,
    const std::function<double(const ir::Description&)>& cost_of_single_calls) {
  Runs* runs = runs_.Find(structure, [](const Runs&) { return true; });
  if (runs == nullptr) {
    const ir::Description description = ir::Describe(graph.key);
    const Costs costs = model_.Of(description);
    const bool is_cheaper_whole = cost_of_single_calls(description) > costs.compilation;
    runs = runs_.Insert(structure, ir::MakeRef<Runs>(costs, is_cheaper_whole));
  }
  const Costs& costs = runs->costs;
  const bool pays = runs->pays();
  if (std::isinf(costs.interpretation) || runs->is_cheaper_whole ||
      (pays && runs->spent >= costs.compilation)) {
    compiled_ += costs.compilation;
    return Decision::kCompile;
  }
  interpreted_ += costs.interpretation;
  if (!pays) return Decision::kInterpret;
  const bool seeks = runs->spent >= costs.load && !std::exchange(runs->was_sought, true);
  runs->spent += costs.interpretation;
  return seeks ? Decision::kLoad : Decision::kInterpret;
}

std::optional<Tiering::Account> Tiering::AccountOf(uint64_t structure) {
  const Runs* const runs = runs_.Find(structure, [](const Runs&) { return true; });
  if (runs == nullptr) return std::nullopt;
  return Account{runs->spent, runs->costs.compilation, runs->pays()};
}

void Tiering::Clear() {
  runs_.Clear();
  interpreted_ = compiled_ = 0;
}

}  // namespace torch_xla_lite::runtime
