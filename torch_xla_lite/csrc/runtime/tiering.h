// Tiering: decides whether a graph is interpreted again, loaded from disk, or compiled.
//
//   Tiering tiering(&model);
//   Tiering::Runs* runs = tiering.Find(graph);
//   if (runs == nullptr) runs = tiering.Add(graph, extra);
//   switch (tiering.Decide(runs)) { ... }
//
// A graph is compiled when its interpreted runs have cost as much as its compilation will cost, so
// that whatever the program does next, it has paid at most twice what was best: who rents skis
// until he has paid their price, and then buys them, does no worse. A program on disk is the same
// at another price; so is the compiler itself. Runs of earlier processes count, too (Remember).
// What compiling does not make faster is never compiled: an executable has a fixed cost for each
// run, and some ops take as long. What has no kernel to interpret it, whose cost is infinite, is
// compiled when it is met for the first time; so is a graph with many calls that would be compiled
// one by one.
//
// Costs are those of a model (costs.h) and not of a clock, so that a program computes the same bits
// in each run that remembers the same. Not thread-safe.

#ifndef TORCH_XLA_LITE_CSRC_RUNTIME_TIERING_H_
#define TORCH_XLA_LITE_CSRC_RUNTIME_TIERING_H_

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/ir/recent_table.h"
#include "torch_xla_lite/csrc/ir/ref.h"
#include "torch_xla_lite/csrc/runtime/costs.h"

namespace torch_xla_lite::ir {
struct Description;
struct Graph;
}  // namespace torch_xla_lite::ir

namespace torch_xla_lite::runtime {

class Tiering {
 public:
  enum class Decision {
    kInterpret,
    kLoad,  // If it is on disk; otherwise it is interpreted. Said once for each graph.
    kCompile,
    kCompileNow,  // It cannot be interpreted, or its single calls would take longer to compile.
  };

  explicit Tiering(const CostModel* model) : model_(*model) {}

  // What a graph costs beside its calls, in microseconds.
  struct Extra {
    double compilation = 0;     // Of single calls that are compiled when it is interpreted.
    double interpretation = 0;  // In each run: copies.
  };

  // What is kept of a graph, or nullptr. It is valid until another graph is added.
  struct Runs;
  Runs* Find(const ir::Graph& graph);
  Runs* Add(const ir::Graph& graph, const Extra& extra);
  // Counts one more run, unless it is compiled. It stays so if it cannot be compiled.
  Decision Decide(Runs* runs);
  // Of the graph of the last decision: the number of the one before that was about it, or 0.
  uint64_t previous() const { return previous_; }
  // The number of the last decision.
  uint64_t last() const { return last_; }
  // What its decisions have cost, by the model.
  double interpreted() const { return interpreted_; }
  double compiled() const { return compiled_; }
  // What the interpreted runs of a graph have cost, what compiling it will cost, and whether that
  // makes its runs faster.
  struct Account {
    double spent;
    double needed;
    bool pays;
    uint32_t processes = 0;  // Earlier ones that ran it, and what it has cost them.
    double in_earlier_processes = 0;
  };
  // Of the graphs that it knows, by their structures.
  std::vector<std::pair<uint64_t, Account>> Accounts() const;
  // What a graph has cost earlier processes: for those that it does not know yet.
  struct Past {
    double spent = 0;
    uint32_t processes = 0;
  };
  void Remember(std::unordered_map<uint64_t, Past> past) { past_ = std::move(past); }
  void Clear();

 private:
  // More graphs than a program runs again and again.
  static constexpr size_t kMost = 16'384;

  const CostModel& model_;
  // By hashes: graphs with the same hash count together, which changes when they are compiled and
  // nothing else.
  ir::RecentTable<Runs> runs_{kMost};
  std::unordered_map<uint64_t, Past> past_;
  uint64_t last_ = 0;
  uint64_t previous_ = 0;
  double interpreted_ = 0;
  double compiled_ = 0;
};

struct Tiering::Runs : ir::RefCounted {
  Runs(const Costs& costs, bool is_cheaper_whole, const Past& past)
      : costs(costs), is_cheaper_whole(is_cheaper_whole), past(past), spent(past.spent) {}

  bool pays() const { return costs.interpretation > costs.execution; }
  Account account() const { return {spent, costs.compilation, pays(), past.processes, past.spent}; }

  const Costs costs;
  const bool is_cheaper_whole;  // To compile, than its single calls.
  const Past past;
  double spent;
  uint64_t last = 0;  // The number of a decision.
  bool was_sought = false;
};

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_TIERING_H_
