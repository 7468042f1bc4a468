// Nodes of the graph: recorded op calls, and the values that they produce.
//
// A Node is one call of a Signature on operands that are values of other nodes. Its results do not
// exist until a graph that contains it has run; then the buffers are stored in the node itself, so
// that whatever was recorded on it meanwhile finds them. A leaf is a node that is created with its
// buffer.
//
//   Value x{Node::Leaf(shape, buffer), 0};
//   std::array<Value, 2> operands{x, x};
//   Value y{Node::Create(add, operands, /*scalars=*/{}), 0};
//   y.buffer();   // nullptr: y is pending
//
// Operands and scalars follow the node in the same allocation, so that recording an op allocates
// once. References are counted atomically and may be dropped on any thread. What changes in a node,
// its results and operands, is guarded by the record lock, and changes only below the sync lock
// (runtime/runtime.h), too: what runs a graph, below that lock, reads its nodes without the other.

#ifndef TORCH_XLA_LITE_CSRC_IR_NODE_H_
#define TORCH_XLA_LITE_CSRC_IR_NODE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "torch_xla_lite/csrc/ir/placement.h"
#include "torch_xla_lite/csrc/ir/record_lock.h"
#include "torch_xla_lite/csrc/ir/ref.h"
#include "torch_xla_lite/csrc/ir/signature.h"
#include "torch_xla_lite/csrc/ir/thread_annotations.h"

namespace torch_xla_lite::ir {

// Data on the device. Only the executor knows its representation (runtime/executor.h).
class Buffer : public RefCounted {
 public:
  virtual ~Buffer() = default;
  // Whether nothing outside the graph can read the data, so that a computation may overwrite it.
  virtual bool IsExclusive() const = 0;
  virtual Placement placement() const { return kOneDevice; }
};

class Node;
class Shape;

// Postpones the destruction of nodes that lose their last reference on this thread to the end of
// the scope. Freeing a value may free all that it was computed from, which should not happen under
// a lock:
//
//   const DestructionScope after;      // declared first, so that it ends last
//   const std::lock_guard lock(mutex);
//   value = {};
class DestructionScope {
 public:
  DestructionScope();
  ~DestructionScope();
  DestructionScope(const DestructionScope&) = delete;
  DestructionScope& operator=(const DestructionScope&) = delete;

 private:
  friend class Node;

  // Nodes to free. Empty in a nested scope: the outermost one collects them.
  std::vector<Node*> dead_;
};

// One result of one node.
struct Value {
  Ref<Node> node;
  uint32_t output = 0;

  explicit operator bool() const { return static_cast<bool>(node); }
  const Shape* shape() const;
  // The data, or nullptr while the value is pending.
  Buffer* buffer() const LITE_REQUIRES(record_lock);
};

class Node : public RefCounted {
 public:
  // Moves the operands into the node (the given ones are left empty).
  static Ref<Node> Create(const Signature* signature, std::span<Value> operands,
                          std::span<const uint64_t> scalars);
  static Ref<Node> Leaf(const Shape* shape, Ref<Buffer> buffer);
  // Frees the node and all nodes that only it refers to, without recursion: a chain may be a
  // million nodes long. Inside a DestructionScope this happens at the end of the scope.
  static void Destroy(Node* node);

  const Signature& signature() const { return *signature_; }
  // Empty values after DropOperands().
  std::span<const Value> operands() const LITE_REQUIRES(record_lock) {
    return {operand_data(), num_operands_};
  }
  std::span<const uint64_t> scalars() const { return {scalar_data(), num_scalars_}; }
  size_t num_outputs() const { return signature_->outputs.size(); }
  Buffer* buffer(uint32_t output) const LITE_REQUIRES(record_lock) {
    return results_ == nullptr ? nullptr : results_[output].get();
  }
  void SetBuffer(uint32_t output, Ref<Buffer> buffer) LITE_REQUIRES(record_lock);
  // Releases what the results were computed from. Call it when all results that can still be asked
  // for exist.
  void DropOperands() LITE_REQUIRES(record_lock);

  // The place in the user's program that recorded the call: a number assigned by the recorder, 0 if
  // unknown. Set before another thread knows the node.
  uint32_t source = 0;

  // Scratch space of the linearisation (ir/graph.cc, donation.cc): valid if `mark` is that of the
  // current linearisation.
  struct Visit {
    uint64_t mark = 0;
    // A node is both a call and a leaf if only some of its results have data.
    uint32_t step = 0;        // of the call
    uint32_t leaf = 0;        // index among the leaves, if the node has one result
    uint32_t references = 0;  // from nodes and roots of the graph
    bool is_entered = false;
    bool is_leaf = false;
    bool is_root = false;
    bool is_retained = false;
  } visit LITE_GUARDED_BY(record_lock);

 private:
  friend class DestructionScope;

  Node(const Signature* signature, uint32_t num_operands, uint32_t num_scalars)
      : signature_(Ref<const Signature>::Share(signature)),
        num_operands_(num_operands),
        num_scalars_(num_scalars) {}
  ~Node() = default;
  static void Free(Node* node);

  // The operands follow the node in memory, the scalars follow the operands.
  Value* operand_data() const;
  uint64_t* scalar_data() const;

  const Ref<const Signature> signature_;
  const uint32_t num_operands_;
  const uint32_t num_scalars_;
  std::unique_ptr<Ref<Buffer>[]> results_ LITE_GUARDED_BY(record_lock);
};

inline const Shape* Value::shape() const { return node->signature().outputs[output]; }
inline Buffer* Value::buffer() const { return node->buffer(output); }

}  // namespace torch_xla_lite::ir

#endif  // TORCH_XLA_LITE_CSRC_IR_NODE_H_
