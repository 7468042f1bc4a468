#include "torch_xla_lite/csrc/ir/graph.h"

#include <limits>
#include <unordered_map>
#include <utility>

#include "torch_xla_lite/csrc/ir/key.h"

namespace torch_xla_lite::ir {
namespace {

constexpr size_t kNone = std::numeric_limits<size_t>::max();

class Linearizer {
 public:
  Linearizer(uint64_t mark, size_t expected_words) : mark_(mark) {
    graph_.key.reserve(expected_words);
  }

  Graph Run(std::span<const Root> roots) {
    graph_.roots.reserve(roots.size());
    successors_.reserve(roots.size());
    for (const Root& root : roots) {
      if (!root.if_needed) AddRoot(*root.value, root.replaced);
    }
    for (const Root& root : roots) {
      if (root.if_needed && VisitOf(*root.value->node).is_entered) {
        AddRoot(*root.value, root.replaced);
      }
    }
    DonateLeaves();
    graph_.key.push_back(kEnd);
    for (const Value& root : graph_.roots) graph_.key.push_back(WordOf(PositionOfPending(root)));
    return std::move(graph_);
  }

 private:
  struct Frame {
    Node* node;
    size_t next_operand;
  };

  // The node's scratch space, cleared when this graph meets the node for the first time.
  Node::Visit& VisitOf(Node& node) const {
    if (node.visit.mark != mark_) node.visit = {.mark = mark_};
    return node.visit;
  }

  void AddRoot(const Value& root, const Node* replaced) {
    AddCalls(*root.node);
    Node::Visit& visit = root.node->visit;
    ++visit.references;
    // Holders of the same result share one root.
    if (visit.is_root && (root.node->num_outputs() == 1 || IndexOf(root, root_of_) != kNone))
      return;
    visit.is_root = true;
    if (root.node->num_outputs() != 1) SetIndex(root, graph_.roots.size(), root_of_);
    if (replaced != nullptr) successors_.emplace(replaced, graph_.roots.size());
    graph_.roots.push_back(root);
    ++visit.references;  // The graph's own.
  }

  // Appends a pending node after all nodes that it depends on.
  void AddCalls(Node& root) {
    Enter(root);
    while (!stack_.empty()) {
      Frame& frame = stack_.back();
      const auto operands = frame.node->operands();
      if (frame.next_operand == operands.size()) {
        AppendCall(*frame.node);
        stack_.pop_back();
        continue;
      }
      const Value& operand = operands[frame.next_operand++];
      if (operand.buffer() != nullptr) {
        AddLeaf(operand);
      } else {
        Enter(*operand.node);
      }
    }
  }

  void Enter(Node& node) {
    Node::Visit& visit = VisitOf(node);
    if (visit.is_entered) return;
    visit.is_entered = true;
    stack_.push_back({&node, 0});
  }

  void AppendCall(Node& node) {
    const auto operands = node.operands();
    const auto scalars = node.scalars();
    graph_.key.push_back(reinterpret_cast<uint64_t>(&node.signature()));
    graph_.key.push_back(uint64_t{operands.size()} << 32 | scalars.size());
    for (const Value& operand : operands) {
      ++operand.node->visit.references;
      graph_.key.push_back(
          WordOf(operand.buffer() != nullptr ? LeafPosition(operand) : PositionOfPending(operand)));
    }
    graph_.scalars.insert(graph_.scalars.end(), scalars.begin(), scalars.end());
    node.visit.step = graph_.nodes.size();
    graph_.nodes.push_back(&node);
  }

  static Position PositionOfPending(const Value& value) {
    return {value.node->visit.step, value.output};
  }

  void AddLeaf(const Value& value) {
    Node& node = *value.node;
    Node::Visit& visit = VisitOf(node);
    if (visit.is_leaf && FindLeaf(value) != kNone) return;
    visit.is_leaf = true;
    if (node.num_outputs() == 1) {
      visit.leaf = graph_.leaves.size();
    } else {
      SetIndex(value, graph_.leaves.size(), leaf_of_);
    }
    leaf_words_.push_back(graph_.key.size());
    leaf_steps_.push_back(graph_.nodes.size());
    graph_.key.push_back(reinterpret_cast<uint64_t>(value.shape()) | kLeafBit);
    graph_.leaves.push_back(value);
    ++visit.references;  // The graph's own.
    graph_.nodes.push_back(&node);
  }

  // Index among the leaves. The value's node is a leaf.
  size_t FindLeaf(const Value& value) const {
    return value.node->num_outputs() == 1 ? value.node->visit.leaf : IndexOf(value, leaf_of_);
  }

  // For nodes with several results; those with one, nearly all, store their index in the node.
  using IndexOfResult = std::unordered_map<const Node*, std::vector<size_t>>;

  static size_t IndexOf(const Value& value, const IndexOfResult& indices) {
    const auto of_node = indices.find(value.node.get());
    return of_node == indices.end() ? kNone : of_node->second[value.output];
  }

  static void SetIndex(const Value& value, size_t index, IndexOfResult& indices) {
    std::vector<size_t>& of_node = indices[value.node.get()];
    if (of_node.empty()) of_node.resize(value.node->num_outputs(), kNone);
    of_node[value.output] = index;
  }

  Position LeafPosition(const Value& value) const { return {leaf_steps_[FindLeaf(value)], 0}; }

  void DonateLeaves() {
    MarkRetained();
    root_of_donor_.assign(graph_.leaves.size(), kNone);
    has_donor_.assign(graph_.roots.size(), false);
    std::vector<size_t> others;
    for (size_t i = 0; i < graph_.leaves.size(); ++i) {
      const Value& leaf = graph_.leaves[i];
      if (!IsDonatable(leaf)) continue;
      const auto successor = successors_.find(leaf.node.get());
      if (successor == successors_.end() || !Donate(i, successor->second)) others.push_back(i);
    }
    DonateToFirstFree(others);
    OrderRootsByDonor();
  }

  bool IsDonatable(const Value& leaf) const {
    const Node::Visit& visit = leaf.node->visit;
    // If the buffer has another owner, that is the call whose result it is.
    return !visit.is_retained && leaf.node->refs() == visit.references &&
           leaf.buffer()->refs() == 1 && leaf.buffer()->IsExclusive();
  }

  bool Donate(size_t leaf, size_t root) {
    if (has_donor_[root]) return false;
    if (graph_.roots[root].shape() != graph_.leaves[leaf].shape()) return false;
    root_of_donor_[leaf] = root;
    has_donor_[root] = true;
    graph_.key[leaf_words_[leaf]] |= kDonatedBit;
    return true;
  }

  // Donates each leaf to the first root of its shape that has no donor yet.
  void DonateToFirstFree(const std::vector<size_t>& leaves) {
    if (leaves.empty()) return;
    // In reverse order, so that the first free root is at the end, where taking it is cheap.
    std::unordered_map<const Shape*, std::vector<size_t>> free;
    for (size_t root = graph_.roots.size(); root-- > 0;) {
      if (!has_donor_[root]) free[graph_.roots[root].shape()].push_back(root);
    }
    for (const size_t leaf : leaves) {
      std::vector<size_t>& roots = free[graph_.leaves[leaf].shape()];
      if (roots.empty()) continue;
      Donate(leaf, roots.back());
      roots.pop_back();
    }
  }

  // jax gives the memory of donated arguments to results of the same shape, both in order. So roots
  // with a donor come first, in the order of their donors.
  void OrderRootsByDonor() {
    std::vector<Value> roots;
    roots.reserve(graph_.roots.size());
    for (const size_t root : root_of_donor_) {
      if (root != kNone) roots.push_back(std::move(graph_.roots[root]));
    }
    for (size_t root = 0; root < graph_.roots.size(); ++root) {
      if (!has_donor_[root]) roots.push_back(std::move(graph_.roots[root]));
    }
    graph_.roots = std::move(roots);
  }

  // A node that is referred to from outside the graph may be computed again, so its leaves must
  // stay. A root with a single result is not computed again: it becomes a leaf.
  void MarkRetained() {
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

  const uint64_t mark_;
  Graph graph_;
  std::vector<Frame> stack_;
  std::vector<size_t> leaf_words_;    // For each leaf: index of its word in the key
  std::vector<uint32_t> leaf_steps_;  // and index of its step.
  std::unordered_map<const Node*, size_t> successors_;  // The root that replaces a leaf.
  std::vector<size_t> root_of_donor_;  // For each leaf: the root that it is donated to, or kNone.
  std::vector<bool> has_donor_;        // For each root.
  IndexOfResult root_of_;              // For nodes with several results:
  IndexOfResult leaf_of_;              // index among roots, and leaves.
};

}  // namespace

Graph Linearize(std::span<const Root> roots) {
  static uint64_t mark = 0;
  // A program's graphs are usually as long as the one before.
  static size_t words = 0;
  Graph graph = Linearizer(++mark, words).Run(roots);
  words = graph.key.size();
  return graph;
}

bool AdaptTo(std::span<const uint64_t> key, Graph* graph) {
  const std::vector<bool> donated = DonatedLeaves(key);
  const std::vector<bool> wanted = DonatedLeaves(graph->key);
  std::vector<uint32_t> copied;
  for (uint32_t leaf = 0; leaf < donated.size(); ++leaf) {
    if (wanted[leaf] && !donated[leaf]) return false;
    if (donated[leaf] && !wanted[leaf]) copied.push_back(leaf);
  }
  std::unordered_map<uint64_t, Value> root_at;
  const size_t first_root = key.size() - graph->roots.size();
  for (size_t i = 0; i < graph->roots.size(); ++i) {
    root_at.emplace(graph->key[first_root + i], std::move(graph->roots[i]));
  }
  for (size_t i = 0; i < graph->roots.size(); ++i) {
    graph->roots[i] = std::move(root_at.at(key[first_root + i]));
  }
  graph->key.assign(key.begin(), key.end());
  graph->copied_leaves = std::move(copied);
  return true;
}

void Commit(const Graph& graph, std::vector<Ref<Buffer>> results) {
  for (size_t i = 0; i < graph.roots.size(); ++i) {
    graph.roots[i].node->SetBuffer(graph.roots[i].output, std::move(results[i]));
  }
  for (const Value& root : graph.roots) {
    Node& node = *root.node;
    if (node.num_outputs() == 1 || !node.visit.is_retained) node.DropOperands();
  }
}

}  // namespace torch_xla_lite::ir
