#include "torch_xla_lite/csrc/runtime/pieces.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/hash.h"
#include "torch_xla_lite/csrc/ir/key.h"
#include "torch_xla_lite/csrc/ir/signature.h"

namespace torch_xla_lite::runtime {
namespace {

using PieceOfStep = std::vector<uint8_t>;

// What stays begins as early as it can.
PieceOfStep Early(const ir::Description& graph, const std::vector<bool>& varies) {
  PieceOfStep pieces(graph.steps.size(), Pieces::kBefore);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const ir::Step& step = graph.steps[i];
    if (step.kind == ir::StepKind::kLeaf) continue;
    uint8_t after = Pieces::kBefore;
    for (const ir::Position operand : step.operands) after = std::max(after, pieces[operand.step]);
    if (varies[i]) pieces[i] = after == Pieces::kBefore ? Pieces::kBefore : Pieces::kAfter;
    if (!varies[i]) pieces[i] = std::max(after, Pieces::kStays);
  }
  return pieces;
}

// What stays begins after all that varies and does not need a call after such a one: calls that
// these need are computed before, too.
PieceOfStep Late(const ir::Description& graph, const std::vector<bool>& varies) {
  PieceOfStep pieces(graph.steps.size(), Pieces::kBefore);
  std::vector<bool> needs_varying(graph.steps.size(), false);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const ir::Step& step = graph.steps[i];
    if (step.kind == ir::StepKind::kLeaf) continue;
    needs_varying[i] = varies[i];
    for (const ir::Position operand : step.operands) {
      pieces[i] = std::max(pieces[i], pieces[operand.step]);
      if (needs_varying[operand.step]) needs_varying[i] = true;
    }
    if (varies[i] && pieces[i] == Pieces::kStays) pieces[i] = Pieces::kAfter;
    if (!varies[i] && needs_varying[i]) pieces[i] = std::max(pieces[i], Pieces::kStays);
  }
  std::vector<bool> is_needed(graph.steps.size(), false);
  for (size_t i = pieces.size(); i-- > 0;) {
    if (pieces[i] != Pieces::kBefore || graph.steps[i].kind == ir::StepKind::kLeaf) continue;
    if (!needs_varying[i] && !is_needed[i]) {
      pieces[i] = Pieces::kStays;
      continue;
    }
    for (const ir::Position operand : graph.steps[i].operands) is_needed[operand.step] = true;
  }
  return pieces;
}

// What stays is all that no call that varies needs, such as the update of parameters.
PieceOfStep Last(const ir::Description& graph, const std::vector<bool>& varies) {
  PieceOfStep pieces(graph.steps.size(), Pieces::kStays);
  for (size_t i = pieces.size(); i-- > 0;) {
    if (varies[i]) pieces[i] = Pieces::kBefore;
    if (pieces[i] != Pieces::kBefore) continue;
    for (const ir::Position operand : graph.steps[i].operands) {
      pieces[operand.step] = Pieces::kBefore;
    }
  }
  return pieces;
}

// Calls on few elements of leaves and of roots. A program may keep a view of a leaf, such as a
// number with one more dimension: if its value were passed on, it would be a leaf of later graphs.
std::vector<bool> Recomputed(const ir::Description& graph, const std::vector<bool>& varies) {
  constexpr size_t kMostCalls = 4;
  constexpr double kMostElements = 1024;
  std::vector<bool> is_root(graph.steps.size(), false), is_recomputed(graph.steps.size(), false);
  for (const ir::Position root : graph.roots) is_root[root.step] = true;
  std::vector<size_t> calls(graph.steps.size(), 0);  // That compute it again; or too many.
  for (size_t i = 0; i < calls.size(); ++i) {
    const ir::Step& step = graph.steps[i];
    const bool is_single = step.kind == ir::StepKind::kLeaf || step.signature->outputs.size() == 1;
    if (step.kind == ir::StepKind::kLeaf || (is_root[i] && is_single)) continue;
    calls[i] = 1;
    for (const ir::Position operand : step.operands) calls[i] += calls[operand.step];
    const CallSize size = SizeOf(graph, step);
    is_recomputed[i] = !is_root[i] && !varies[i] && calls[i] <= kMostCalls &&
                       size.operands + size.results <= kMostElements;
    if (!is_recomputed[i]) calls[i] = kMostCalls + 1;
  }
  return is_recomputed;
}

}  // namespace

uint32_t Pieces::MeetingsOf(const ir::Signature& call) const {
  const uint32_t meetings = call.met & 3;
  const uint32_t last = call.met >> 2;
  const bool counts = last >= first_graph_ && (meetings == kVarying || last + kRecent >= graph_);
  return counts ? meetings : 0;
}

bool Pieces::Varies(const ir::Signature& call) const { return MeetingsOf(call) != kStaying; }

std::vector<uint8_t> Pieces::Of(const ir::Graph& graph) {
  ++graph_;
  std::vector<const ir::Signature*> calls;
  for (const ir::Node* node : graph.nodes) calls.push_back(&node->signature());
  std::ranges::sort(calls);
  calls.erase(std::ranges::unique(calls).begin(), calls.end());
  PieceOfStep pieces;
  const auto varying = static_cast<size_t>(
      std::ranges::count_if(calls, [&](const ir::Signature* call) { return Varies(*call); }));
  if (varying > 0 && varying < calls.size()) pieces = Divided(graph);
  for (const ir::Signature* call : calls) {
    uint32_t meetings = MeetingsOf(*call);
    if (meetings < kStaying) meetings = pieces.empty() ? meetings + 1 : kVarying;
    call->met = graph_ << 2 | meetings;
  }
  return pieces;
}

void Pieces::Clear() {
  staying_.Clear();
  first_graph_ = graph_ + 1;
}

std::vector<uint8_t> Pieces::Divided(const ir::Graph& of) {
  const ir::Description& graph = of.description();
  std::vector<bool> varies(graph.steps.size());
  std::vector<double> costs(graph.steps.size());
  for (size_t i = 0; i < varies.size(); ++i) {
    const ir::Step& step = graph.steps[i];
    if (step.kind == ir::StepKind::kLeaf) continue;
    varies[i] = Varies(*step.signature);
    costs[i] = model_.InterpretationOf(graph, step);
  }
  PieceOfStep best;
  double cost_of_best =
      std::max(kLeastCost, kLeastPart * std::accumulate(costs.begin(), costs.end(), 0.0));
  for (const auto& divide : {Early, Late, Last}) {
    PieceOfStep pieces = divide(graph, varies);
    double found = 0;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i] == kStays) found += costs[i];
    }
    if (found < cost_of_best) continue;
    cost_of_best = found;
    best = std::move(pieces);
  }
  if (best.empty()) return {};
  uint64_t hash = 0;
  for (size_t i = 0; i < best.size(); ++i) {
    if (best[i] == kStays && graph.steps[i].signature)
      hash = ir::MixWord(hash, graph.steps[i].signature->number);
  }
  Staying* staying = staying_.Find(hash, [](const Staying&) { return true; });
  if (staying == nullptr) staying = staying_.Insert(hash, ir::MakeRef<Staying>());
  if (std::exchange(staying->last_graph, of.structure()) != of.structure()) ++staying->graphs;
  if (staying->graphs <= kGraphsBefore) return {};
  const std::vector<bool> is_recomputed = Recomputed(graph, varies);
  for (size_t i = 0; i < best.size(); ++i) {
    if (graph.steps[i].kind == ir::StepKind::kLeaf) best[i] = kLeaf;
    if (is_recomputed[i]) best[i] = kWhereNeeded;
  }
  return best;
}

std::array<PieceRoots, 3> RootsOfPieces(const ir::Graph& graph, std::span<const uint8_t> pieces,
                                        std::span<const ir::Root> roots) {
  std::array<PieceRoots, 3> of_pieces;
  std::unordered_map<const ir::Node*, uint8_t> piece_of_call;
  const auto add = [&](const ir::Value& value, uint8_t before,
                       const ir::Root& as) LITE_REQUIRES(ir::record_lock) {
    const auto found = piece_of_call.find(value.node.get());
    if (found == piece_of_call.end() || found->second >= before || value.buffer()) return;
    of_pieces[found->second].values.push_back(value);
    of_pieces[found->second].roots.push_back(as);
  };
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i] == Pieces::kLeaf || pieces[i] == Pieces::kWhereNeeded) continue;
    piece_of_call.emplace(graph.nodes[i], pieces[i]);
    for (const ir::Value& operand : graph.nodes[i]->operands()) add(operand, pieces[i], {});
  }
  for (const ir::Root& root : roots) {
    add(*root.value, Pieces::kLeaf, {nullptr, root.replaced, root.placement});
  }
  for (auto& [values, of_piece] : of_pieces) {
    for (size_t i = 0; i < values.size(); ++i) of_piece[i].value = &values[i];
  }
  return of_pieces;
}

}  // namespace torch_xla_lite::runtime
