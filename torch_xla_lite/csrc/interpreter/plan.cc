#include "torch_xla_lite/csrc/interpreter/plan.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/ScopeExit.h>

#include <algorithm>
#include <utility>

#include "torch_xla_lite/csrc/aten/aten_call.h"
#include "torch_xla_lite/csrc/aten/kernel_keys.h"
#include "torch_xla_lite/csrc/device/block_allocator.h"
#include "torch_xla_lite/csrc/interpreter/arena.h"
#include "torch_xla_lite/csrc/interpreter/cpu_call.h"
#include "torch_xla_lite/csrc/ir/graph.h"

namespace torch_xla_lite::interpreter {
namespace {

using Kind = Memory::Kind;

// What each plan may keep.
constexpr size_t kFewBytes = 4096;

}  // namespace

void Plan::SetArena(size_t bytes) {
  arena_bytes_ = bytes;
  if (bytes <= kFewBytes) own_arena_ = c10::GetCPUAllocator()->allocate(bytes);
}

bool Plan::is_short() const {
  constexpr size_t kFewSteps = 32, kShort = size_t{1} << 18;
  size_t bytes = 0;
  for (const Memory& memory : memories_) bytes += memory.bytes();
  return steps_.size() <= kFewSteps && bytes <= kShort;
}

std::vector<at::Tensor> Plan::Run(const ir::Graph& graph, std::span<const Leaf> leaves,
                                  RunCall call) {
  const aten::KernelKeysGuard keys;
  const device::BlockScope blocks;
  size_t leaf = 0;
  const bool takes_arena = arena_bytes_ > kFewBytes;
  const c10::DataPtr taken =
      takes_arena ? c10::GetCPUAllocator()->allocate(arena_bytes_) : c10::DataPtr();
  void* const arena = takes_arena ? taken.get() : own_arena_.get();
  const bool has_moved = std::exchange(arena_, arena) != arena;
  for (Memory& memory : memories_) {
    if (memory.kind == Kind::kLeaf) memory.Place(leaves[leaf++].data);
    if (memory.kind == Kind::kArena && has_moved) {
      memory.Place(static_cast<char*>(arena) + memory.offset);
    }
  }
  const auto release = c10::make_scope_exit([&] {
    for (Memory& memory : memories_) memory.held.reset();
  });
  std::vector<at::Tensor> placed(roots_.size());
  has_written_ = false;
  for (Step& step : steps_) {
    if (&step == first_write_) has_written_ = true;
    const ir::Node& node = *graph.nodes[step.node];
    for (const uint32_t i : step.roots) {
      const Trace::Value& value = roots_[i].value;
      placed[i] = at::Tensor(at::detail::empty_cpu(value.sizes, value.dtype));
      memories_[value.memory].Place(placed[i].mutable_data_ptr());
    }
    if (step.kept != nullptr) {
      step.kept->Run(node.scalars());
    } else {
      Call(step, node, call);
    }
    for (const uint32_t memory : step.releases) memories_[memory].held.reset();
  }
  for (size_t i = 0; i < roots_.size(); ++i) {
    const Root& root = roots_[i];
    if (root.leaf) {
      placed[i] = leaves[*root.leaf].tensor.view(root.value.sizes);
    } else if (!placed[i].defined()) {
      placed[i] = Result(root);
    }
  }
  return placed;
}

// Whether a result is a view at another place of its base, and not one that was written to.
bool Plan::Moves(const Trace::Value& value, const at::Tensor& result) const {
  if (value.memory == Trace::kUndefined || !result.defined()) return false;
  const Memory& memory = memories_[value.memory];
  return memory.kind == Kind::kView && !result.storage().is_alias_of(memory.storage());
}

void Plan::Call(const Step& step, const ir::Node& node, RunCall call) {
  const std::vector<at::Tensor> results = call(node, step.operands, step.overwrites);
  bool is_same = results.size() == step.results.size();
  for (size_t i = 0; is_same && i < results.size(); ++i) {
    const Trace::Value& value = step.results[i];
    const bool moves = Moves(value, results[i]);
    is_same = value.Describes(results[i], /*anywhere=*/moves);
    if (!is_same || value.memory == Trace::kUndefined) continue;
    Memory& memory = memories_[value.memory];
    if (moves) {
      memory.Place(results[i].mutable_data_ptr());
      continue;
    }
    const c10::Storage& storage = results[i].storage();
    const bool is_there = storage.is_alias_of(memory.storage()) ||
                          (memory.held.defined() && storage.is_alias_of(memory.held.storage()));
    if (is_there) continue;
    const auto shares = [&](const at::Tensor& operand) {
      return operand.defined() && operand.storage().is_alias_of(storage);
    };
    is_same = memory.kind == Kind::kCall && storage.nbytes() == memory.bytes() &&
              !memory.held.defined() && std::ranges::none_of(step.operands, shares);
    if (!is_same) continue;
    memory.held = results[i];
    memory.Place(storage.mutable_data());
  }
  if (!is_same) throw aten::UnexpectedResults(node.signature().op);
}

at::Tensor Plan::Result(const Root& root) {
  Memory& memory = memories_[root.value.memory];
  if (root.owns_memory && memory.kind == Kind::kCall) {
    at::Tensor held = std::exchange(memory.held, at::Tensor());
    const bool is_root = held.use_count() == 1 && held.storage().use_count() == 1;
    if (is_root && root.value.Describes(held)) return held;
    memory.held = std::move(held);
  }
  return root.tensor.clone(at::MemoryFormat::Contiguous);
}

}  // namespace torch_xla_lite::interpreter
