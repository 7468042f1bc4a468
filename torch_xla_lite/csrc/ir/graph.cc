#include "torch_xla_lite/csrc/ir/graph.h"

#include <limits>
#include <unordered_map>
#include <utility>

#include "torch_xla_lite/csrc/ir/donation.h"

namespace torch_xla_lite::ir {
namespace {

constexpr size_t kNone = std::numeric_limits<size_t>::max();

class Linearizer {
 public:
  Linearizer(uint64_t mark, size_t expected_words) : mark_(mark) {
    graph_.key.reserve(expected_words);
  }

  Graph Run(std::span<const Root> roots) LITE_REQUIRES(record_lock) {
    graph_.roots.reserve(roots.size());
    replaced_.reserve(roots.size());
    for (const Root& root : roots) {
      if (!root.if_needed) AddRoot(root);
    }
    for (const Root& root : roots) {
      if (root.if_needed && VisitOf(*root.value->node).is_entered) AddRoot(root);
    }
    FindMesh();
    DonateLeaves(&graph_, leaf_words_, replaced_);
    AppendPlacementsAndRoots();
    return std::move(graph_);
  }

 private:
  struct Frame {
    Node* node;
    size_t next_operand;
  };

  // The node's scratch space, cleared when this graph meets the node for the first time.
  Node::Visit& VisitOf(Node& node) const LITE_REQUIRES(record_lock) {
    if (node.visit.mark != mark_) node.visit = {.mark = mark_};
    return node.visit;
  }

  void AddRoot(const Root& added) LITE_REQUIRES(record_lock) {
    const Value& root = *added.value;
    AddCalls(*root.node);
    Node::Visit& visit = root.node->visit;
    ++visit.references;
    // Holders of the same result share one root.
    if (visit.is_root && (root.node->num_outputs() == 1 || IndexOf(root, root_of_) != kNone))
      return;
    visit.is_root = true;
    if (root.node->num_outputs() != 1) SetIndex(root, graph_.roots.size(), root_of_);
    graph_.roots.push_back(root);
    replaced_.push_back(added.replaced);
    graph_.root_placements.push_back(added.placement);
    ++visit.references;  // The graph's own.
  }

  void FindMesh() LITE_REQUIRES(record_lock) {
    for (const Value& leaf : graph_.leaves) {
      if (graph_.mesh == 0) graph_.mesh = MeshOf(leaf.buffer()->placement());
    }
    if (graph_.mesh == 0) graph_.root_placements.clear();
    for (Placement& placement : graph_.root_placements) {
      placement = PlacementOn(graph_.mesh, placement);
    }
  }

  void AppendPlacementsAndRoots() LITE_REQUIRES(record_lock) {
    if (graph_.mesh == 0) {
      graph_.key.push_back(kEnd);
      for (const Value& root : graph_.roots) graph_.key.push_back(WordOf(PositionOfPending(root)));
      return;
    }
    graph_.key.push_back(kEndOnMesh);
    for (const Value& leaf : graph_.leaves) {
      graph_.key.push_back(PlacementOn(graph_.mesh, leaf.buffer()->placement()));
    }
    for (size_t i = 0; i < graph_.roots.size(); ++i) {
      graph_.key.push_back(WordOf(PositionOfPending(graph_.roots[i])));
      graph_.key.push_back(graph_.root_placements[i]);
    }
  }

  // Appends a pending node after all nodes that it depends on.
  void AddCalls(Node& root) LITE_REQUIRES(record_lock) {
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

  void Enter(Node& node) LITE_REQUIRES(record_lock) {
    Node::Visit& visit = VisitOf(node);
    if (visit.is_entered) return;
    visit.is_entered = true;
    stack_.push_back({&node, 0});
  }

  void AppendCall(Node& node) LITE_REQUIRES(record_lock) {
    const auto operands = node.operands();
    const auto scalars = node.scalars();
    graph_.key.push_back(reinterpret_cast<uint64_t>(&node.signature()));
    graph_.key.push_back(CountsOf(operands.size(), scalars.size()));
    for (const Value& operand : operands) {
      ++operand.node->visit.references;
      graph_.key.push_back(
          WordOf(operand.buffer() != nullptr ? LeafPosition(operand) : PositionOfPending(operand)));
    }
    graph_.scalars.insert(graph_.scalars.end(), scalars.begin(), scalars.end());
    node.visit.step = graph_.nodes.size();
    graph_.nodes.push_back(&node);
  }

  static Position PositionOfPending(const Value& value) LITE_REQUIRES(record_lock) {
    return {value.node->visit.step, value.output};
  }

  void AddLeaf(const Value& value) LITE_REQUIRES(record_lock) {
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
    graph_.key.push_back(WordOfLeaf(value.shape()));
    graph_.leaves.push_back(value);
    ++visit.references;  // The graph's own.
    graph_.nodes.push_back(&node);
  }

  // Index among the leaves. The value's node is a leaf.
  size_t FindLeaf(const Value& value) const LITE_REQUIRES(record_lock) {
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

  Position LeafPosition(const Value& value) const LITE_REQUIRES(record_lock) {
    return {leaf_steps_[FindLeaf(value)], 0};
  }

  const uint64_t mark_;
  Graph graph_;
  std::vector<Frame> stack_;
  std::vector<size_t> leaf_words_;     // For each leaf: index of its word in the key
  std::vector<uint32_t> leaf_steps_;   // and index of its step.
  std::vector<const Node*> replaced_;  // For each root: the leaf that it replaces, or nullptr.
  IndexOfResult root_of_;              // For nodes with several results:
  IndexOfResult leaf_of_;              // index among roots, and leaves.
};

}  // namespace

const Description& Graph::description() const {
  if (!description_) description_ = Describe(key);
  return *description_;
}

uint64_t Graph::structure() const {
  if (!structure_) structure_ = StructureHash(key);
  return *structure_;
}

void Graph::UseKey(std::span<const uint64_t> other) {
  key.assign(other.begin(), other.end());
  description_.reset();
}

Placement PlacementOn(uint32_t mesh, Placement placement) {
  return placement == kOneDevice ? ReplicatedOn(mesh) : placement;
}

Graph Linearize(std::span<const Root> roots) {
  static uint64_t mark = 0;
  // A program's graphs are usually as long as the one before.
  static size_t words = 0;
  Graph graph = Linearizer(++mark, words).Run(roots);
  words = graph.key.size();
  return graph;
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
