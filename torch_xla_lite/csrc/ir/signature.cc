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

// The word, with the hash of a shape in the place of its address.
uint64_t WithoutAddress(uint64_t word, std::span<const Ref<const Shape>> shapes) {
  constexpr uint64_t kAddress = (uint64_t{1} << 48) - 1;
  for (const Ref<const Shape>& shape : shapes) {
    for (const int shift : {0, 8}) {
      if ((word >> shift & kAddress) != reinterpret_cast<uint64_t>(shape.get())) continue;
      return MixWord(word & ~(kAddress << shift), shape->hash());
    }
  }
  return word;
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

uint64_t Signature::hash() const {
  if (const uint64_t known = hash_.load(std::memory_order_relaxed)) return known;
  uint64_t hash = words.size();
  for (const char letter : op) hash = MixWord(hash, static_cast<unsigned char>(letter));
  if (written) hash = MixWord(hash, *written);
  if (!words.empty()) hash = MixWord(hash, words[0] >> 56);
  for (size_t i = 1; i < words.size(); ++i) hash = MixWord(hash, WithoutAddress(words[i], shapes_));
  for (const Shape* output : outputs) hash = MixWord(hash, output == nullptr ? 0 : output->hash());
  hash_.store(hash, std::memory_order_relaxed);
  return hash;
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
