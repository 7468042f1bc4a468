#include "torch_xla_lite/csrc/ir/signature.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "torch_xla_lite/csrc/ir/hash.h"
#include "torch_xla_lite/csrc/ir/shape.h"

namespace torch_xla_lite::ir {
namespace {

uint64_t NextNumber() {
  static std::atomic<uint64_t> last = 0;
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Signature::Signature(std::string op, std::vector<uint64_t> words, std::vector<const Shape*> outputs)
    : number(NextNumber()), op(std::move(op)), words(std::move(words)) {
  for (const Shape* output : outputs) AddOutput(Ref<const Shape>::Share(output));
}

Signature::~Signature() = default;

void Signature::AddOutput(Ref<const Shape> shape) {
  outputs.push_back(shape.get());
  if (shape) shapes_.push_back(std::move(shape));
}

void Signature::Keep(const Shape* shape) { shapes_.push_back(Ref<const Shape>::Share(shape)); }

void Signature::KeepShapesOf(const Signature& other) {
  shapes_.insert(shapes_.end(), other.shapes_.begin(), other.shapes_.end());
}

const Signature* SignatureTable::Find(std::span<const uint64_t> words) {
  return signatures_.Find(HashWords(words), [&](const Signature& signature) {
    return std::ranges::equal(signature.words, words);
  });
}

const Signature* SignatureTable::Insert(Ref<const Signature> signature) {
  if (const Signature* known = Find(signature->words)) return known;
  const uint64_t hash = HashWords(signature->words);
  return signatures_.Insert(hash, std::move(signature));
}

}  // namespace torch_xla_lite::ir
