#include "torch_xla_lite/csrc/ir/key.h"

#include <algorithm>
#include <utility>

namespace torch_xla_lite::ir {
namespace {

Position PositionOf(uint64_t word) {
  return {static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(word)};
}

// Calls `visit` with the word of each leaf of a key. Returns where its roots begin.
template <typename Word, typename Visit>
size_t ForEachLeaf(std::span<Word> key, Visit&& visit) {
  size_t i = 0;
  while (key[i] != kEnd) {
    if (key[i] & kLeafBit) {
      visit(key[i++]);
    } else {
      i += 2 + (key[i + 1] >> 32);
    }
  }
  return i + 1;
}

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

Description Describe(std::span<const uint64_t> key) {
  Description description;
  size_t i = 0;
  while (key[i] != kEnd) {
    const uint64_t word = key[i++];
    Step step;
    if (word & kLeafBit) {
      step.leaf = reinterpret_cast<const Shape*>(word & ~(kLeafBit | kDonatedBit));
      step.donated = (word & kDonatedBit) != 0;
    } else {
      step.signature = reinterpret_cast<const Signature*>(word);
      const uint64_t counts = key[i++];
      step.num_scalars = static_cast<uint32_t>(counts);
      for (uint64_t n = counts >> 32; n > 0; --n) step.operands.push_back(PositionOf(key[i++]));
    }
    description.steps.push_back(std::move(step));
  }
  for (++i; i < key.size(); ++i) description.roots.push_back(PositionOf(key[i]));
  return description;
}

std::vector<bool> DonatedLeaves(std::span<const uint64_t> key) {
  std::vector<bool> donated;
  ForEachLeaf(key, [&](uint64_t word) { donated.push_back((word & kDonatedBit) != 0); });
  return donated;
}

std::vector<uint64_t> StructureOf(std::span<const uint64_t> key) {
  std::vector<uint64_t> structure(key.begin(), key.end());
  const size_t roots =
      ForEachLeaf(std::span(structure), [](uint64_t& word) { word &= ~kDonatedBit; });
  std::sort(structure.begin() + roots, structure.end());
  return structure;
}

}  // namespace torch_xla_lite::ir
