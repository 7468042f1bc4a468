#include "torch_xla_lite/csrc/runtime/graph_runner.h"

#include <utility>

#include "torch_xla_lite/csrc/ir/graph.h"

namespace torch_xla_lite::runtime {

struct GraphRunner::Known final : Executable {
  Known(uint64_t structure, ir::Ref<Plan> plan) : structure(structure), plan(std::move(plan)) {}

  const uint64_t structure;
  ir::Ref<Plan> plan;
  uint64_t last_run = 0;    // The number of a decision (tiering.h).
  uint64_t insertions = 0;  // Of the cache, when it had no executable for the graph.
};

FoundGraph GraphRunner::Find(const ir::Graph& graph) {
  auto executable = cache_.Find(graph.key);
  auto known = executable ? ir::Ref<Executable>() : known_.Find(graph.key);
  return {std::move(executable), std::move(known)};
}

std::vector<uint8_t> GraphRunner::Divide(const ir::Graph& graph) { return pieces_.Of(graph); }

std::vector<ir::Ref<ir::Buffer>> GraphRunner::Run(ir::Graph* graph, FoundGraph found,
                                                  Executor& executor, bool may_interpret) {
  ir::Ref<Executable> executable = std::move(found.executable);
  auto* const known = static_cast<Known*>(found.known.get());
  if (!executable) executable = FindLater(graph, known);
  if (executable) {
    ++counters_.cache_hits;
  } else {
    if (known) graph->set_structure(known->structure);
    const auto decision = may_interpret ? Decide(*graph, executor) : Tiering::Decision::kCompile;
    if (decision == Tiering::Decision::kLoad) executable = executor.Load(*graph);
    if (!executable && decision != Tiering::Decision::kCompile) {
      if (auto results = Interpret(*graph, executor, known)) return *std::move(results);
    }
    if (!executable) executable = executor.Compile(*graph);
    compilations_.erase(graph->key);
    Insert(ir::KeptKey(graph->key), executable);
  }
  auto results = executor.Execute(*executable, *graph);
  ++counters_.executions;
  return results;
}

std::optional<std::vector<ir::Ref<ir::Buffer>>> GraphRunner::Interpret(const ir::Graph& graph,
                                                                       Executor& executor,
                                                                       Known* known) {
  ir::Ref<Plan> first;
  ir::Ref<Plan>* const added = ComesBack(graph) ? &first : nullptr;
  auto results = executor.Interpret(graph, cache_, known != nullptr ? &known->plan : added);
  if (!results) return std::nullopt;
  ++counters_.interpretations;
  if (first) {
    auto kept = ir::MakeRef<Known>(graph.structure(), std::move(first));
    kept->last_run = tiering_.last();
    known_.Insert(ir::KeptKey(graph.key), std::move(kept));
  } else if (known != nullptr) {
    known->last_run = tiering_.last();
  }
  return results;
}

// Whether a graph has run before, and its plan would be used. In a loop over more graphs than are
// kept, each would be dropped before it comes back. So a graph replaces only one that last ran
// before this graph's previous run.
bool GraphRunner::ComesBack(const ir::Graph& graph) const {
  if (tiering_.previous() == 0) return false;
  if (known_.size() == 0 || !known_.IsFull(graph.key.size())) return true;
  return static_cast<const Known&>(known_.oldest()).last_run < tiering_.previous();
}

// The cache has none with the same key.
ir::Ref<Executable> GraphRunner::FindLater(ir::Graph* graph, Known* known) {
  if (!compilations_.empty()) {
    TakeCompiled();
    if (auto executable = cache_.Find(graph->key)) return executable;
  }
  if (known != nullptr && known->insertions == cache_.insertions()) return {};
  auto executable = cache_.FindAdaptable(graph);
  if (known != nullptr && !executable) known->insertions = cache_.insertions();
  return executable;
}

// Counts a run of a graph that has no executable.
Tiering::Decision GraphRunner::Decide(const ir::Graph& graph, Executor& executor) {
  using Decision = Tiering::Decision;
  if (compile_when_ == CompileWhen::kFirst) return Decision::kCompile;
  const auto found = compilations_.find(graph.key);
  if (found != compilations_.end()) {
    return found->second.compilation ? Decision::kInterpret : Decision::kCompile;
  }
  if (!std::exchange(has_asked_for_past_, true)) tiering_.Remember(executor.PastCosts());
  Tiering::Runs* runs = tiering_.Find(graph);
  if (runs == nullptr) {
    runs = tiering_.Add(graph, executor.ExtraCosts(graph.description(), cache_));
  }
  const Decision decision = tiering_.Decide(runs);
  if (decision == Decision::kCompileNow) return Decision::kCompile;
  if (decision != Decision::kCompile || compile_when_ != CompileWhen::kBackground) return decision;
  compilations_.emplace(graph.key, Started{ir::KeptKey(graph.key), executor.StartCompile(graph)});
  return Decision::kInterpret;
}

// Moves what was compiled in the background to the cache.
void GraphRunner::TakeCompiled() {
  for (auto it = compilations_.begin(); it != compilations_.end();) {
    auto& [key, compilation] = it->second;
    if (!compilation || !compilation->IsDone()) {
      ++it;
    } else if (auto executable = compilation->Result()) {
      Insert(std::move(key), std::move(executable));
      it = compilations_.erase(it);
    } else {
      compilation = {};
    }
  }
}

void GraphRunner::Insert(ir::KeptKey key, ir::Ref<Executable> executable) {
  counters_.CountCompiled(executable->is_loaded());
  cache_.Insert(std::move(key), std::move(executable));
}

void GraphRunner::Clear() {
  cache_.Clear();
  known_.Clear();
  tiering_.Clear();
  pieces_.Clear();
  compilations_.clear();
}

}  // namespace torch_xla_lite::runtime
