// Signatures: everything about an op call that determines how it is compiled.
//
// A Signature is the op, its constant arguments and the shapes of its operands (encoded together as
// words), and the shapes of its results. Two calls that differ only in their data or in runtime
// scalars share one Signature, so the structure of graphs can be compared by the addresses of
// signatures.
//
//   SignatureTable table;
//   const Signature* s = table.Find(words);              // nullptr if it is new
//   if (s == nullptr) s = table.Insert(std::make_unique<Signature>("aten::relu", words, outputs));
//
// Signatures live as long as their table. A SignatureTable is not thread-safe.

#ifndef TORCH_XLA_LITE_CSRC_IR_SIGNATURE_H_
#define TORCH_XLA_LITE_CSRC_IR_SIGNATURE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace torch_xla_lite::ir {

class Shape;

struct Signature {
  Signature(std::string op, std::vector<uint64_t> words, std::vector<const Shape*> outputs)
      : op(std::move(op)), words(std::move(words)), outputs(std::move(outputs)) {}
  virtual ~Signature() = default;

  // The name that lowerings are found by, such as "aten::add.Tensor".
  std::string op;
  // The key of the call. The recorder defines its encoding; the IR only compares it.
  std::vector<uint64_t> words;
  // One for each result; nullptr for a result that the op leaves undefined.
  std::vector<const Shape*> outputs;
  // Whether each element of the only result is zero, whatever the operands are.
  bool is_zeros = false;
};

// An open-addressing hash table: a lookup is one probe and one comparison, and nothing is ever
// removed.
class SignatureTable {
 public:
  SignatureTable();

  const Signature* Find(std::span<const uint64_t> words) const;
  // Returns the existing signature if there is one with the same words.
  const Signature* Insert(std::unique_ptr<Signature> signature);
  size_t size() const { return owned_.size(); }

 private:
  struct Slot {
    uint64_t hash = 0;
    const Signature* signature = nullptr;
  };

  const Slot& Probe(std::span<const uint64_t> words, uint64_t hash) const;
  void Grow();

  std::vector<Slot> slots_;
  std::vector<std::unique_ptr<Signature>> owned_;
};

}  // namespace torch_xla_lite::ir

#endif  // TORCH_XLA_LITE_CSRC_IR_SIGNATURE_H_
