#include "torch_xla_lite/csrc/ir/signature.h"

#include <algorithm>

#include "torch_xla_lite/csrc/ir/hash.h"

namespace torch_xla_lite::ir {

SignatureTable::SignatureTable() : slots_(1024) {}

// The slot that holds the words, or the empty slot in which to insert them.
const SignatureTable::Slot& SignatureTable::Probe(std::span<const uint64_t> words,
                                                  uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.signature == nullptr) return slot;
    if (slot.hash == hash && std::ranges::equal(slot.signature->words, words)) return slot;
  }
}

const Signature* SignatureTable::Find(std::span<const uint64_t> words) const {
  return Probe(words, HashWords(words)).signature;
}

const Signature* SignatureTable::Insert(std::unique_ptr<Signature> signature) {
  const uint64_t hash = HashWords(signature->words);
  const Slot& slot = Probe(signature->words, hash);
  if (slot.signature != nullptr) return slot.signature;
  const_cast<Slot&>(slot) = {hash, signature.get()};
  owned_.push_back(std::move(signature));
  const Signature* inserted = owned_.back().get();
  if (owned_.size() * 2 > slots_.size()) Grow();
  return inserted;
}

void SignatureTable::Grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.signature == nullptr) continue;
    const_cast<Slot&>(Probe(slot.signature->words, slot.hash)) = slot;
  }
}

}  // namespace torch_xla_lite::ir
