#include "torch_xla_lite/csrc/ir/node.h"

#include <algorithm>
#include <new>

#include "torch_xla_lite/csrc/ir/hash.h"
#include "torch_xla_lite/csrc/ir/mutex.h"
#include "torch_xla_lite/csrc/ir/recent_table.h"

namespace torch_xla_lite::ir {
namespace {

// The nodes collected by the outermost DestructionScope of this thread.
thread_local std::vector<Node*>* scope_dead = nullptr;

// The signature of all leaves of a shape: no op, no words, one result.
Ref<const Signature> LeafSignature(const Shape* shape) {
  constexpr size_t kMostUnused = 8192;
  static auto* mutex = new Mutex;
  static auto* signatures = new RecentTable<const Signature>(kMostUnused);
  // Each keeps its shape, so that no other shape has the address.
  const uint64_t hash = MixWord(0, reinterpret_cast<uint64_t>(shape));
  const MutexLock lock(mutex);
  const Signature* signature =
      signatures->Find(hash, [&](const Signature& other) { return other.outputs[0] == shape; });
  if (signature == nullptr) {
    signature = signatures->Insert(
        hash, MakeRef<const Signature>("", std::vector<uint64_t>(), std::vector{shape}));
  }
  return Ref<const Signature>::Share(signature);
}

}  // namespace

Value* Node::operand_data() const { return reinterpret_cast<Value*>(const_cast<Node*>(this) + 1); }

uint64_t* Node::scalar_data() const {
  return reinterpret_cast<uint64_t*>(operand_data() + num_operands_);
}

Ref<Node> Node::Create(const Signature* signature, std::span<Value> operands,
                       std::span<const uint64_t> scalars) {
  void* memory = ::operator new(sizeof(Node) + operands.size() * sizeof(Value) +
                                scalars.size() * sizeof(uint64_t));
  Node* node = new (memory) Node(signature, operands.size(), scalars.size());
  Value* destination = node->operand_data();
  for (Value& operand : operands) new (destination++) Value(std::move(operand));
  std::ranges::copy(scalars, node->scalar_data());
  return Ref<Node>::Take(node);
}

Ref<Node> Node::Leaf(const Shape* shape, Ref<Buffer> buffer) {
  Ref<Node> node = Create(LeafSignature(shape).get(), {}, {});
  // Without the lock: no other thread knows the node.
  [&]() LITE_NO_THREAD_SAFETY_ANALYSIS { node->SetBuffer(0, std::move(buffer)); }();
  return node;
}

void Node::SetBuffer(uint32_t output, Ref<Buffer> buffer) {
  if (results_ == nullptr) results_ = std::make_unique<Ref<Buffer>[]>(num_outputs());
  results_[output] = std::move(buffer);
}

void Node::DropOperands() {
  for (size_t i = 0; i < num_operands_; ++i) operand_data()[i] = Value();
}

void Node::Destroy(Node* node) {
  const DestructionScope scope;
  scope_dead->push_back(node);
}

void Node::Free(Node* node) {
  std::destroy_n(node->operand_data(), node->num_operands_);
  node->~Node();
  ::operator delete(node);
}

DestructionScope::DestructionScope() {
  if (scope_dead == nullptr) scope_dead = &dead_;
}

DestructionScope::~DestructionScope() {
  if (scope_dead != &dead_) return;
  // Freeing a node drops its operands, which may be the last references to further nodes: those
  // are appended to the queue instead of being freed recursively.
  while (!dead_.empty()) {
    Node* next = dead_.back();
    dead_.pop_back();
    Node::Free(next);
  }
  scope_dead = nullptr;
}

}  // namespace torch_xla_lite::ir
