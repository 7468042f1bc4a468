// Runs graphs: by the executable of the same key if there is one; otherwise the graph is
// interpreted, or compiled first.
//
//   GraphRunner runner(&counters);
//   runner.set_compile_when(CompileWhen::kRepeated);
//   ir::Graph graph = ir::Linearize(roots);
//   ir::Commit(graph, runner.Run(&graph, runner.Find(graph), executor, true));
//
// Not thread-safe, except set_compile_when: the runtime holds its sync lock.

#ifndef TORCH_XLA_LITE_CSRC_RUNTIME_GRAPH_RUNNER_H_
#define TORCH_XLA_LITE_CSRC_RUNTIME_GRAPH_RUNNER_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "torch_xla_lite/csrc/ir/key.h"
#include "torch_xla_lite/csrc/runtime/costs.h"
#include "torch_xla_lite/csrc/runtime/counters.h"
#include "torch_xla_lite/csrc/runtime/executable_cache.h"
#include "torch_xla_lite/csrc/runtime/executor.h"
#include "torch_xla_lite/csrc/runtime/pieces.h"
#include "torch_xla_lite/csrc/runtime/tiering.h"

namespace torch_xla_lite::ir {
struct Graph;
}  // namespace torch_xla_lite::ir

namespace torch_xla_lite::runtime {

// When a graph without an executable is compiled.
enum class CompileWhen {
  // At once: the first time that it runs.
  kFirst,
  // When its interpreted runs have cost as much as that (tiering.h). A model decides, not a clock,
  // so that a program gives the same bits in each run.
  kRepeated,
  // As kRepeated, but compiled by another thread; until then the graph is interpreted. How often
  // depends on timing.
  kBackground,
};

// What is kept for a graph: a compiled one, or what is known of one that was interpreted twice.
struct FoundGraph {
  ir::Ref<Executable> executable;
  ir::Ref<Executable> known;

  explicit operator bool() const { return executable || known; }
};

class GraphRunner {
 public:
  explicit GraphRunner(Counters* counters) : counters_(*counters), cache_(kCacheCapacity) {}

  void set_compile_when(CompileWhen value) { compile_when_ = value; }

  // Runs no code of the executor, so the record lock may be held.
  FoundGraph Find(const ir::Graph& graph);
  // The piece of each step of a graph for which nothing is kept, if it is to be run in pieces
  // (pieces.h); otherwise empty.
  std::vector<uint8_t> Divide(const ir::Graph& graph);
  // One buffer for each root. The roots of the graph may be put in another order. Throws what the
  // executor throws.
  std::vector<ir::Ref<ir::Buffer>> Run(ir::Graph* graph, FoundGraph found, Executor& executor,
                                       bool may_interpret);
  CostModel& costs() { return costs_; }
  Tiering& tiering() { return tiering_; }
  // Forgets all executables, and how often graphs ran.
  void Clear();

 private:
  // More than the distinct graphs of a typical program; an executable takes some hundred kB.
  static constexpr size_t kCacheCapacity = 1024;
  // A plan takes some 600 bytes for each word of its key.
  static constexpr size_t kMostPlans = 1024;
  static constexpr size_t kMostWordsOfPlans = size_t{1} << 16;

  // Of a graph that was interpreted twice.
  struct Known;

  ir::Ref<Executable> FindLater(ir::Graph* graph, Known* known);
  Tiering::Decision Decide(const ir::Graph& graph, Executor& executor);
  std::optional<std::vector<ir::Ref<ir::Buffer>>> Interpret(const ir::Graph& graph,
                                                            Executor& executor, Known* known);
  bool ComesBack(const ir::Graph& graph) const;
  void TakeCompiled();
  void Insert(ir::KeptKey key, ir::Ref<Executable> executable);

  Counters& counters_;
  ExecutableCache cache_;
  ExecutableCache known_{kMostPlans, kMostWordsOfPlans};
  CostModel costs_;
  Tiering tiering_{&costs_};
  Pieces pieces_{&costs_};
  bool has_asked_for_past_ = false;
  std::atomic<CompileWhen> compile_when_ = CompileWhen::kFirst;
  struct Started {
    ir::KeptKey key;
    ir::Ref<Compilation> compilation;  // Nothing if it failed.
  };
  // In the background, by the key of the graph.
  std::map<std::vector<uint64_t>, Started> compilations_;
};

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_GRAPH_RUNNER_H_
