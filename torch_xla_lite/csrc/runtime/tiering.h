// Tiering: decides whether a graph is interpreted again, loaded from disk, or compiled.
//
//   Tiering tiering(&model);
//   switch (tiering.Decide(graph, structure, cost_of_single_calls)) { ... }
//
// A graph is compiled when its interpreted runs have cost as much as its compilation will cost, so
// that whatever the program does next, it has paid at most twice what was best: who rents skis
// until he has paid their price, and then buys them, does no worse. A program on disk is the same
// at another price. What compiling cannot make faster, because an executable has a fixed cost for
// each run, is never compiled. What has no kernel to interpret it, whose cost is infinite, is
// compiled when it is met for the first time; so is a graph with many calls that would be compiled
// one by one.
//
// Costs are those of a model (costs.h) and not of a clock, so that a program computes the same bits
// in each run. Not thread-safe.

#ifndef TORCH_XLA_LITE_CSRC_RUNTIME_TIERING_H_
#define TORCH_XLA_LITE_CSRC_RUNTIME_TIERING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

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
  };

  explicit Tiering(const CostModel* model) : model_(*model) {}

  // Counts one more run, unless it is compiled. It stays so if it cannot be compiled.
  // structure: the hash of the graph's. cost_of_single_calls: of those that interpreting the graph
  // would compile, in microseconds; asked once for each graph.
  Decision Decide(const ir::Graph& graph, uint64_t structure,
                  const std::function<double(const ir::Description&)>& cost_of_single_calls);
  // What its decisions have cost, by the model.
  double interpreted() const { return interpreted_; }
  double compiled() const { return compiled_; }
  // What the interpreted runs of a graph have cost, what compiling it will cost, and whether that
  // makes its runs faster. Nothing for one that it does not remember.
  struct Account {
    double spent;
    double needed;
    bool pays;
  };
  std::optional<Account> AccountOf(uint64_t structure);
  void Clear();

 private:
  struct Runs : ir::RefCounted {
    Runs(const Costs& costs, bool is_cheaper_whole)
        : costs(costs), is_cheaper_whole(is_cheaper_whole) {}

    bool pays() const { return costs.interpretation > costs.execution; }

    const Costs costs;
    const bool is_cheaper_whole;  // To compile, than its single calls.
    double spent = 0;
    bool was_sought = false;
  };

  // More graphs than a program runs again and again.
  static constexpr size_t kMost = 16'384;

  const CostModel& model_;
  // By hashes: graphs with the same hash count together, which changes when they are compiled and
  // nothing else.
  ir::RecentTable<Runs> runs_{kMost};
  double interpreted_ = 0;
  double compiled_ = 0;
};

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_TIERING_H_
