// Signatures: everything about an op call that determines how it is compiled.
//
// A Signature is the op, its constant arguments and the shapes of its operands (encoded together as
// words), and the shapes of its results. Two calls that differ only in their data or in runtime
// scalars share one Signature, so the structure of graphs can be compared by the addresses of
// signatures.
//
//   SignatureTable table;
//   const Signature* s = table.Find(words);              // nullptr if it is new
//   if (s == nullptr) s = table.Insert(MakeRef<Signature>("aten::relu", words, outputs));
//
// A signature of a table lives until the table needs the place and nothing else refers to it: who
// keeps its address keeps a Ref. Its number is never used again. A SignatureTable is not
// thread-safe.

#ifndef TORCH_XLA_LITE_CSRC_IR_SIGNATURE_H_
#define TORCH_XLA_LITE_CSRC_IR_SIGNATURE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "torch_xla_lite/csrc/ir/recent_table.h"
#include "torch_xla_lite/csrc/ir/ref.h"

namespace torch_xla_lite::ir {

class Shape;

struct Signature : RefCounted {
  Signature(std::string op, std::vector<uint64_t> words, std::vector<const Shape*> outputs);
  virtual ~Signature();

  // Adds a result, or keeps a shape alive that the words refer to.
  void AddOutput(Ref<const Shape> shape);
  void Keep(const Shape* shape);
  void KeepShapesOf(const Signature& other);

  // Of the op, the words and the results; the same in every process.
  uint64_t hash() const;

  // Whether something besides its table refers to it.
  virtual bool IsReferenced() const { return refs() > 1; }

  // No other signature has or had this number; another one may get its address.
  const uint64_t number;
  // The name that lowerings are found by, such as "aten::add.Tensor".
  std::string op;
  // If a call writes through a view that the op makes: which of the op's results is written.
  std::optional<uint32_t> written;
  // The key of the call. The recorder defines its encoding; the IR only compares it, and knows
  // where addresses are: the op's in the first word, below its highest byte; those of shapes, which
  // the signature keeps, in the lowest 48 bits of a word, or above its lowest byte.
  std::vector<uint64_t> words;
  // One for each result; nullptr for a result that the op leaves undefined.
  std::vector<const Shape*> outputs;
  // Whether each element of the only result is zero, whatever the operands are.
  bool is_zeros = false;

  // What runs of graphs have found out about the call. Guarded by the sync lock.
  struct Derived {
    virtual ~Derived() = default;
  };
  mutable std::unique_ptr<const Derived> derived;  // By the interpreter.
  mutable uint32_t met = 0;                        // By runtime/pieces.h.

 private:
  std::vector<Ref<const Shape>> shapes_;
  mutable std::atomic<uint64_t> hash_ = 0;  // 0: not computed yet.
};

class SignatureTable {
 public:
  SignatureTable() : signatures_(kMostUnused) {}

  const Signature* Find(std::span<const uint64_t> words);
  // Returns the existing signature if there is one with the same words.
  const Signature* Insert(Ref<const Signature> signature);
  size_t size() const { return signatures_.size(); }

 private:
  // About 1 kB each. A training step has a few hundred, which its program refers to.
  static constexpr size_t kMostUnused = 8192;

  RecentTable<const Signature> signatures_;
};

}  // namespace torch_xla_lite::ir

#endif  // TORCH_XLA_LITE_CSRC_IR_SIGNATURE_H_
