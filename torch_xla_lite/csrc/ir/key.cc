#include "torch_xla_lite/csrc/ir/key.h"

#include <algorithm>
#include <array>
#include <utility>

#include "torch_xla_lite/csrc/ir/hash.h"

namespace torch_xla_lite::ir {
namespace {

Position PositionOf(uint64_t word) {
  return {static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(word)};
}

bool IsEnd(uint64_t word) { return word == kEnd || word == kEndOnMesh; }

// Calls the functions with the word of each leaf, and of each signature. Returns where the steps of
// the key end.
template <typename Word, typename OnLeaf, typename OnCall>
size_t ForEachStep(std::span<Word> key, OnLeaf&& on_leaf, OnCall&& on_call) {
  size_t i = 0;
  while (!IsEnd(key[i])) {
    if (key[i] & kLeafBit) {
      on_leaf(key[i++]);
    } else {
      on_call(key[i]);
      i += 2 + (key[i + 1] >> 32);
    }
  }
  return i;
}

const Shape* LeafOf(uint64_t word) {
  return reinterpret_cast<const Shape*>(word & ~(kLeafBit | kDonatedBit));
}

const Signature* SignatureOf(uint64_t word) { return reinterpret_cast<const Signature*>(word); }

constexpr auto kNothing = [](uint64_t) {};

}  // namespace

std::vector<uint64_t> KeyOfCall(const Signature& signature, std::span<const Shape* const> operands,
                                uint32_t num_scalars) {
  std::vector<uint64_t> key;
  for (const Shape* operand : operands) key.push_back(WordOfLeaf(operand));
  key.push_back(reinterpret_cast<uint64_t>(&signature));
  key.push_back(CountsOf(operands.size(), num_scalars));
  const auto call = static_cast<uint32_t>(operands.size());
  for (uint32_t i = 0; i < call; ++i) key.push_back(WordOf(Position{i, 0}));
  key.push_back(kEnd);
  for (uint32_t i = 0; i < signature.outputs.size(); ++i) {
    if (signature.outputs[i] != nullptr) key.push_back(WordOf(Position{call, i}));
  }
  return key;
}

KeptKey::KeptKey(std::vector<uint64_t> words) : words_(std::move(words)) {
  ForEachStep(
      this->words(),
      [&](uint64_t word) { leaves_.push_back(Ref<const Shape>::Share(LeafOf(word))); },
      [&](uint64_t word) {
        signatures_.push_back(Ref<const Signature>::Share(SignatureOf(word)));
      });
}

Description Describe(std::span<const uint64_t> key) {
  Description description;
  description.operands.reserve(key.size());
  size_t i = 0;
  size_t num_leaves = 0;
  while (!IsEnd(key[i])) {
    const uint64_t word = key[i++];
    Step& step = description.steps.emplace_back();
    if (word & kLeafBit) {
      ++num_leaves;
      step.leaf = LeafOf(word);
      step.donated = (word & kDonatedBit) != 0;
      continue;
    }
    step.signature = SignatureOf(word);
    step.kind = step.signature->written ? StepKind::kWrite : StepKind::kCall;
    const uint64_t counts = key[i++];
    step.num_scalars = static_cast<uint32_t>(counts);
    // The words of the key are more than enough, so it does not move.
    const Position* const first = description.operands.data() + description.operands.size();
    for (uint64_t n = counts >> 32; n > 0; --n)
      description.operands.push_back(PositionOf(key[i++]));
    step.operands = {first, counts >> 32};
  }
  const bool is_on_mesh = key[i++] == kEndOnMesh;
  for (; is_on_mesh && num_leaves > 0; --num_leaves) {
    description.leaf_placements.push_back(static_cast<Placement>(key[i++]));
  }
  while (i < key.size()) {
    description.roots.push_back(PositionOf(key[i++]));
    if (is_on_mesh) description.root_placements.push_back(static_cast<Placement>(key[i++]));
  }
  return description;
}

const Shape* ShapeAt(const Description& graph, Position position) {
  const Step& step = graph.steps[position.step];
  return step.kind == StepKind::kLeaf ? step.leaf : step.signature->outputs[position.output];
}

RootWords RootsOf(std::span<const uint64_t> key) {
  size_t num_leaves = 0;
  const size_t end = ForEachStep(
      key, [&](uint64_t) { ++num_leaves; }, kNothing);
  if (key[end] == kEnd) return {end + 1, 1};
  return {end + 1 + num_leaves, 2};
}

std::vector<bool> DonatedLeaves(std::span<const uint64_t> key) {
  std::vector<bool> donated;
  ForEachStep(
      key, [&](uint64_t word) { donated.push_back((word & kDonatedBit) != 0); }, kNothing);
  return donated;
}

std::vector<uint64_t> StructureOf(std::span<const uint64_t> key) {
  std::vector<uint64_t> structure(key.begin(), key.end());
  ForEachStep(
      std::span(structure), [](uint64_t& word) { word &= ~kDonatedBit; }, kNothing);
  const auto [first, stride] = RootsOf(key);
  if (stride == 1) {
    std::sort(structure.begin() + first, structure.end());
  } else {
    std::vector<std::array<uint64_t, 2>> roots;
    for (size_t i = first; i < key.size(); i += 2) roots.push_back({key[i], key[i + 1]});
    std::ranges::sort(roots);
    auto place = structure.begin() + first;
    for (const auto& root : roots) place = std::ranges::copy(root, place).out;
  }
  return structure;
}

uint64_t StructureHash(std::span<const uint64_t> key) {
  std::vector<uint64_t> structure = StructureOf(key);
  ForEachStep(
      std::span(structure), [](uint64_t& word) { word = LeafOf(word)->hash() | kLeafBit; },
      [](uint64_t& word) { word = SignatureOf(word)->hash() & ~kLeafBit; });
  return HashWords(structure);
}

}  // namespace torch_xla_lite::ir
