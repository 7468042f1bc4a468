#include "torch_xla_lite/csrc/runtime/tiering.h"

#include <cmath>
#include <utility>

#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/key.h"

namespace torch_xla_lite::runtime {

Tiering::Runs* Tiering::Find(const ir::Graph& graph) {
  return runs_.Find(graph.structure(), [](const Runs&) { return true; });
}

Tiering::Runs* Tiering::Add(const ir::Graph& graph, const Extra& extra) {
  Costs costs = model_.Of(graph.description());
  costs.interpretation += extra.interpretation;
  const auto past = past_.find(graph.structure());
  return runs_.Insert(graph.structure(),
                      ir::MakeRef<Runs>(costs, extra.compilation > costs.compilation,
                                        past == past_.end() ? Past() : past->second));
}

Tiering::Decision Tiering::Decide(Runs* runs) {
  previous_ = std::exchange(runs->last, ++last_);
  const Costs& costs = runs->costs;
  const bool pays = runs->pays();
  const bool is_compiled_now = std::isinf(costs.interpretation) || runs->is_cheaper_whole;
  // All that was interpreted pays for the compiler's start.
  const bool may_start = compiled_ > 0 || interpreted_ >= model_.start();
  if (is_compiled_now || (pays && may_start && runs->spent >= costs.compilation)) {
    compiled_ += costs.compilation;
    return is_compiled_now ? Decision::kCompileNow : Decision::kCompile;
  }
  interpreted_ += costs.interpretation;
  if (!pays) return Decision::kInterpret;
  const bool seeks =
      may_start && runs->spent >= costs.load && !std::exchange(runs->was_sought, true);
  runs->spent += costs.interpretation;
  return seeks ? Decision::kLoad : Decision::kInterpret;
}

std::vector<std::pair<uint64_t, Tiering::Account>> Tiering::Accounts() const {
  std::vector<std::pair<uint64_t, Account>> accounts;
  runs_.ForEach([&](uint64_t structure, const Runs& runs) {
    accounts.emplace_back(structure, runs.account());
  });
  return accounts;
}

void Tiering::Clear() {
  runs_.Clear();
  past_.clear();
  interpreted_ = compiled_ = 0;
}

}  // namespace torch_xla_lite::runtime
