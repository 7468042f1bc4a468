#include "torch_xla_lite/csrc/runtime/graph_runner.h"

#include <utility>

#include "torch_xla_lite/csrc/ir/graph.h"

namespace torch_xla_lite::runtime {

std::vector<ir::Ref<ir::Buffer>> GraphRunner::Run(ir::Graph* graph, Executor& executor,
                                                  bool may_interpret) {
  ir::Ref<Executable> executable = Find(graph);
  if (executable) {
    ++counters_.cache_hits;
  } else {
    if (may_interpret && IsInterpretedNow(*graph, executor)) {
      if (auto results = executor.Interpret(*graph, cache_)) {
        ++counters_.interpretations;
        return *std::move(results);
      }
    }
    executable = executor.Compile(*graph);
    if (compile_when_ != CompileWhen::kFirst) tiering_.NoteCompiled(*graph);
    compilations_.erase(graph->key);
    Insert(graph->key, executable);
  }
  auto results = executor.Execute(*executable, *graph);
  ++counters_.executions;
  return results;
}

ir::Ref<Executable> GraphRunner::Find(ir::Graph* graph) {
  if (auto executable = cache_.Find(graph->key)) return executable;
  TakeCompiled();
  if (auto executable = cache_.Find(graph->key)) return executable;
  return cache_.FindAdaptable(graph);
}

// Counts a run of a graph that has no executable.
bool GraphRunner::IsInterpretedNow(const ir::Graph& graph, Executor& executor) {
  if (compile_when_ == CompileWhen::kFirst) return false;
  const auto found = compilations_.find(graph.key);
  if (found != compilations_.end()) return static_cast<bool>(found->second);
  const bool is_waited_for = compile_when_ != CompileWhen::kBackground;
  if (!tiering_.IsHot(graph, is_waited_for)) return true;
  if (is_waited_for) return false;
  compilations_.emplace(graph.key, executor.StartCompile(graph));
  tiering_.NoteCompiled(graph);
  return true;
}

// Moves what was compiled in the background to the cache.
void GraphRunner::TakeCompiled() {
  for (auto it = compilations_.begin(); it != compilations_.end();) {
    auto& [key, compilation] = *it;
    if (!compilation || !compilation->IsDone()) {
      ++it;
    } else if (auto executable = compilation->Result()) {
      Insert(key, std::move(executable));
      it = compilations_.erase(it);
    } else {
      compilation = {};
    }
  }
}

void GraphRunner::Insert(const std::vector<uint64_t>& key, ir::Ref<Executable> executable) {
  counters_.CountCompiled(executable->is_loaded());
  cache_.Insert(key, std::move(executable));
}

void GraphRunner::Clear() {
  cache_.Clear();
  tiering_.Clear();
  compilations_.clear();
}

}  // namespace torch_xla_lite::runtime
