#include "torch_xla_lite/csrc/ir/donation.h"

#include <limits>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/key.h"
#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/ir/placement.h"

namespace torch_xla_lite::ir {
namespace {

constexpr size_t kNone = std::numeric_limits<size_t>::max();

class Donation {
 public:
  Donation(Graph* graph, std::span<const size_t> leaf_words)
      : graph_(*graph),
        leaf_words_(leaf_words),
        root_of_donor_(graph->leaves.size(), kNone),
        has_donor_(graph->roots.size(), false) {}

  void Run(std::span<const Node* const> replaced) LITE_REQUIRES(record_lock) {
    MarkRetained();
    std::unordered_map<const Node*, size_t> successors;
    successors.reserve(replaced.size());
    for (size_t root = 0; root < replaced.size(); ++root) {
      if (replaced[root] != nullptr) successors.emplace(replaced[root], root);
    }
    std::vector<size_t> others;
    for (size_t i = 0; i < graph_.leaves.size(); ++i) {
      const Value& leaf = graph_.leaves[i];
      if (!IsDonatable(leaf)) continue;
      const auto successor = successors.find(leaf.node.get());
      if (successor == successors.end() || !Donate(i, successor->second)) others.push_back(i);
    }
    DonateToFirstFree(others);
    OrderRootsByDonor();
  }

 private:
  bool IsDonatable(const Value& leaf) const LITE_REQUIRES(record_lock) {
    const Node::Visit& visit = leaf.node->visit;
    // If the buffer has another owner, that is the call whose result it is.
    return !visit.is_retained && leaf.node->refs() == visit.references &&
           leaf.buffer()->refs() == 1 && leaf.buffer()->IsExclusive();
  }

  // A value can have the memory of another of the same shape, in the same place.
  using Kind = std::pair<const Shape*, Placement>;

  Kind KindOfLeaf(size_t leaf) const LITE_REQUIRES(record_lock) {
    const Value& value = graph_.leaves[leaf];
    return {value.shape(), PlacementOn(graph_.mesh, value.buffer()->placement())};
  }

  Kind KindOfRoot(size_t root) const {
    const bool is_on_mesh = graph_.mesh != 0;
    return {graph_.roots[root].shape(),
            is_on_mesh ? graph_.root_placements[root] : ReplicatedOn(0)};
  }

  bool Donate(size_t leaf, size_t root) LITE_REQUIRES(record_lock) {
    if (has_donor_[root]) return false;
    if (KindOfRoot(root) != KindOfLeaf(leaf)) return false;
    root_of_donor_[leaf] = root;
    has_donor_[root] = true;
    graph_.key[leaf_words_[leaf]] |= kDonatedBit;
    return true;
  }

  // Donates each leaf to the first root of its kind that has no donor yet.
  void DonateToFirstFree(const std::vector<size_t>& leaves) LITE_REQUIRES(record_lock) {
    if (leaves.empty()) return;
    // In reverse order, so that the first free root is at the end, where taking it is cheap.
    std::map<Kind, std::vector<size_t>> free;
    for (size_t root = graph_.roots.size(); root-- > 0;) {
      if (!has_donor_[root]) free[KindOfRoot(root)].push_back(root);
    }
    for (const size_t leaf : leaves) {
      std::vector<size_t>& roots = free[KindOfLeaf(leaf)];
      if (roots.empty()) continue;
      Donate(leaf, roots.back());
      roots.pop_back();
    }
  }

  // jax gives the memory of donated arguments to results of the same shape, both in order. So roots
  // with a donor come first, in the order of their donors.
  void OrderRootsByDonor() {
    std::vector<size_t> order;
    order.reserve(graph_.roots.size());
    for (const size_t root : root_of_donor_) {
      if (root != kNone) order.push_back(root);
    }
    for (size_t root = 0; root < graph_.roots.size(); ++root) {
      if (!has_donor_[root]) order.push_back(root);
    }
    Reorder(&graph_.roots, order);
    if (graph_.mesh != 0) Reorder(&graph_.root_placements, order);
  }

  template <typename T>
  static void Reorder(std::vector<T>* values, const std::vector<size_t>& order) {
    std::vector<T> ordered;
    ordered.reserve(order.size());
    for (const size_t i : order) ordered.push_back(std::move((*values)[i]));
    *values = std::move(ordered);
  }

  // A node that is referred to from outside the graph may be computed again, so its leaves must
  // stay. A root with a single result is not computed again: it becomes a leaf.
  void MarkRetained() LITE_REQUIRES(record_lock) {
    for (auto it = graph_.nodes.rbegin(); it != graph_.nodes.rend(); ++it) {
      Node& node = **it;
      if (!node.visit.is_entered) continue;  // A leaf; its operands may have been dropped.
      if (node.visit.is_root && node.num_outputs() == 1) {
        node.visit.is_retained = false;
        continue;
      }
      if (node.refs() > node.visit.references) node.visit.is_retained = true;
      if (!node.visit.is_retained) continue;
      for (const Value& operand : node.operands()) operand.node->visit.is_retained = true;
    }
  }

  Graph& graph_;
  const std::span<const size_t> leaf_words_;
  std::vector<size_t> root_of_donor_;  // For each leaf: the root that it is donated to, or kNone.
  std::vector<bool> has_donor_;        // For each root.
};

}  // namespace

void DonateLeaves(Graph* graph, std::span<const size_t> leaf_words,
                  std::span<const Node* const> replaced) {
  Donation(graph, leaf_words).Run(replaced);
}

bool AdaptTo(std::span<const uint64_t> key, Graph* graph) {
  if (StructureOf(key) != StructureOf(graph->key)) return false;
  const std::vector<bool> donated = DonatedLeaves(key);
  const std::vector<bool> wanted = DonatedLeaves(graph->key);
  std::vector<uint32_t> copied;
  for (uint32_t leaf = 0; leaf < donated.size(); ++leaf) {
    if (wanted[leaf] && !donated[leaf]) return false;
    if (donated[leaf] && !wanted[leaf]) copied.push_back(leaf);
  }
  std::unordered_map<uint64_t, Value> root_at;
  const auto [first, stride] = RootsOf(key);
  for (size_t i = 0; i < graph->roots.size(); ++i) {
    root_at.emplace(graph->key[first + i * stride], std::move(graph->roots[i]));
  }
  for (size_t i = 0; i < graph->roots.size(); ++i) {
    graph->roots[i] = std::move(root_at.at(key[first + i * stride]));
    if (graph->mesh != 0) {
      graph->root_placements[i] = static_cast<Placement>(key[first + i * stride + 1]);
    }
  }
  graph->UseKey(key);
  graph->copied_leaves = std::move(copied);
  return true;
}

}  // namespace torch_xla_lite::ir
