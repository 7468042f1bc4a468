#include "torch_xla_lite/csrc/interpreter/plan.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/DefaultDtype.h>
#include <c10/util/ScopeExit.h>

#include <algorithm>
#include <utility>

#include "torch_xla_lite/csrc/device/block_allocator.h"
#include "torch_xla_lite/csrc/interpreter/arena.h"
#include "torch_xla_lite/csrc/interpreter/cpu_call.h"
#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ops/aten_call.h"
#include "torch_xla_lite/csrc/ops/kernel_keys.h"

namespace torch_xla_lite::interpreter {
namespace {

using Kind = Memory::Kind;

// What each plan may keep.
constexpr size_t kFewBytes = 4096;

// The first address of memories that have no place yet. Nothing is there.
constexpr uintptr_t kNowhere = uintptr_t{1} << 16;

// Whether each result of a call is some memory of an operand, which the call does not write to: its
// tensors say all that it does.
bool IsView(const ir::Step& step, std::span<const Trace::Step> steps, const Trace::Step& traced) {
  const bool writes = traced.overwrites && !CpuCall::Of(*step.signature).is_view();
  if (writes || step.num_scalars > 0) return false;
  return std::ranges::all_of(traced.results, [&](const Trace::Value& result) {
    return std::ranges::any_of(step.operands, [&](const ir::Position operand) {
      return steps[operand.step].results[operand.output].memory == result.memory &&
             result.memory != Trace::kUndefined;
    });
  });
}

bool IsDense(const at::Tensor& tensor, const Memory& memory) {
  return tensor.is_contiguous() && tensor.storage_offset() == 0 &&
         tensor.nbytes() == memory.bytes();
}

// For each memory the step that needs it last; for that of a root, the number of steps.
std::vector<size_t> LastUses(const ir::Description& graph, const Trace& trace) {
  std::vector<size_t> last(trace.memories().size());
  const auto use = [&](ir::Position position, size_t step) {
    const uint32_t memory = trace.steps()[position.step].results[position.output].memory;
    if (memory != Trace::kUndefined) last[memory] = step;
  };
  for (uint32_t i = 0; i < graph.steps.size(); ++i) {
    for (uint32_t k = 0; k < trace.steps()[i].results.size(); ++k) use({i, k}, i);
    for (const ir::Position operand : graph.steps[i].operands) use(operand, i);
  }
  for (const ir::Position root : graph.roots) use(root, graph.steps.size());
  return last;
}

}  // namespace

Plan::Plan(const ir::Description& graph, const Trace& trace,
           c10::function_ref<bool(const ir::Signature&)> keeps)
    : default_dtype_(c10::get_default_dtype_as_scalartype()) {
  const dispatch::KernelKeysGuard keys;
  MakeTensors(trace);
  for (uint32_t i = 0; i < graph.steps.size(); ++i) {
    if (graph.steps[i].signature != nullptr) AddStep(graph, trace, i, keeps);
  }
  AddRoots(graph, trace);
  PlaceInArena(graph, trace);
}

void Plan::MakeTensors(const Trace& trace) {
  uintptr_t next = kNowhere;
  for (const size_t bytes : trace.memories()) memories_.emplace_back(bytes, &next);
  for (const Trace::Step& step : trace.steps()) {
    std::vector<at::Tensor>& tensors = tensors_.emplace_back();
    for (const Trace::Value& value : step.results) {
      const bool is_defined = value.memory != Trace::kUndefined;
      tensors.push_back(is_defined ? memories_[value.memory].Tensor(value) : at::Tensor());
    }
  }
}

void Plan::AddStep(const ir::Description& graph, const Trace& trace, uint32_t node,
                   c10::function_ref<bool(const ir::Signature&)> keeps) {
  const ir::Step& call = graph.steps[node];
  const Trace::Step& traced = trace.steps()[node];
  if (IsView(call, trace.steps(), traced)) return;
  Step step;
  step.node = node;
  step.overwrites = traced.overwrites;
  for (const ir::Position operand : call.operands) {
    step.operands.push_back(tensors_[operand.step][operand.output]);
  }
  if (keeps(*call.signature) && tensors_[node].size() == 1) {
    step.kept = CpuCall::Of(*call.signature).Keep(step.operands, tensors_[node][0]);
  }
  if (step.kept != nullptr) {
    const std::vector<const void*> places = step.kept->kernel().places();
    std::vector<uint32_t> used{traced.results[0].memory};
    for (const ir::Position operand : call.operands) {
      used.push_back(trace.steps()[operand.step].results[operand.output].memory);
    }
    std::ranges::sort(used);
    used.erase(std::ranges::unique(used).begin(), used.end());
    for (const uint32_t memory : used) memories_[memory].Follow(&step.kept->kernel(), places);
  } else {
    step.results = traced.results;
  }
  const Kind kind = step.kept != nullptr ? Kind::kArena : Kind::kCall;
  for (const Trace::Value& result : traced.results) {
    if (result.memory == Trace::kUndefined) continue;
    const bool is_new = std::ranges::none_of(call.operands, [&](const ir::Position operand) {
      return trace.steps()[operand.step].results[operand.output].memory == result.memory;
    });
    if (is_new) memories_[result.memory].kind = kind;
  }
  steps_.push_back(std::move(step));
}

void Plan::AddRoots(const ir::Description& graph, const Trace& trace) {
  std::vector<size_t> count(memories_.size());
  for (const ir::Position position : graph.roots) {
    const Trace::Value& value = trace.steps()[position.step].results[position.output];
    roots_.push_back({value, tensors_[position.step][position.output]});
    ++count[value.memory];
  }
  for (Root& root : roots_) {
    Memory& memory = memories_[root.value.memory];
    root.owns_memory =
        memory.kind != Kind::kLeaf && count[root.value.memory] == 1 && IsDense(root.tensor, memory);
    if (root.owns_memory && memory.kind == Kind::kArena) memory.kind = Kind::kRoot;
  }
}

void Plan::PlaceInArena(const ir::Description& graph, const Trace& trace) {
  const std::vector<size_t> last = LastUses(graph, trace);
  std::vector<std::vector<uint32_t>> ends(graph.steps.size() + 1);
  for (uint32_t memory = 0; memory < last.size(); ++memory) ends[last[memory]].push_back(memory);
  std::vector<uint32_t> root_of(memories_.size());
  for (uint32_t i = 0; i < roots_.size(); ++i) root_of[roots_[i].value.memory] = i;
  std::vector<bool> is_placed(memories_.size());
  Arena arena;
  auto step = steps_.begin();
  for (uint32_t i = 0; i < graph.steps.size(); ++i) {
    const bool runs = step != steps_.end() && step->node == i;
    for (const Trace::Value& result : trace.steps()[i].results) {
      if (result.memory == Trace::kUndefined || is_placed[result.memory]) continue;
      is_placed[result.memory] = true;
      Memory& memory = memories_[result.memory];
      if (memory.kind == Kind::kArena) memory.offset = arena.Take(memory.bytes());
      if (memory.kind == Kind::kRoot) step->roots.push_back(root_of[result.memory]);
    }
    for (const uint32_t dead : ends[i]) {
      Memory& memory = memories_[dead];
      if (memory.kind == Kind::kArena) arena.Return(memory.offset, memory.bytes());
      // What a view is the last to need is released at the end.
      if (memory.kind == Kind::kCall && runs) step->releases.push_back(dead);
    }
    if (runs) ++step;
  }
  arena_bytes_ = arena.size();
  if (arena_bytes_ <= kFewBytes) own_arena_ = c10::GetCPUAllocator()->allocate(arena_bytes_);
}

bool Plan::is_short() const {
  constexpr size_t kFewSteps = 32, kShort = size_t{1} << 18;
  size_t bytes = 0;
  for (const Memory& memory : memories_) bytes += memory.bytes();
  return steps_.size() <= kFewSteps && bytes <= kShort;
}

bool Plan::Holds() const { return default_dtype_ == c10::get_default_dtype_as_scalartype(); }

std::vector<at::Tensor> Plan::Run(const ir::Graph& graph, std::span<void* const> leaves,
                                  RunCall call) {
  const dispatch::KernelKeysGuard keys;
  const device::BlockScope blocks;
  size_t leaf = 0;
  const bool takes_arena = arena_bytes_ > kFewBytes;
  const c10::DataPtr taken =
      takes_arena ? c10::GetCPUAllocator()->allocate(arena_bytes_) : c10::DataPtr();
  void* const arena = takes_arena ? taken.get() : own_arena_.get();
  const bool has_moved = std::exchange(arena_, arena) != arena;
  for (Memory& memory : memories_) {
    if (memory.kind == Kind::kLeaf) memory.Place(leaves[leaf++]);
    if (memory.kind == Kind::kArena && has_moved) {
      memory.Place(static_cast<char*>(arena) + memory.offset);
    }
  }
  const auto release = c10::make_scope_exit([&] {
    for (Memory& memory : memories_) memory.held.reset();
  });
  std::vector<at::Tensor> placed(roots_.size());
  for (Step& step : steps_) {
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
  for (size_t i = 0; i < roots_.size(); ++i) placed[i] = Result(roots_[i], std::move(placed[i]));
  return placed;
}

void Plan::Call(const Step& step, const ir::Node& node, RunCall call) {
  const std::vector<at::Tensor> results = call(node, step.operands, step.overwrites);
  bool is_same = results.size() == step.results.size();
  for (size_t i = 0; is_same && i < results.size(); ++i) {
    const Trace::Value& value = step.results[i];
    is_same = value.Describes(results[i]);
    if (!is_same || value.memory == Trace::kUndefined) continue;
    Memory& memory = memories_[value.memory];
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
  if (!is_same) throw dispatch::UnexpectedResults(node.signature().op);
}

at::Tensor Plan::Result(const Root& root, at::Tensor placed) {
  Memory& memory = memories_[root.value.memory];
  if (placed.defined()) return placed;
  if (root.owns_memory && memory.kind == Kind::kCall) {
    at::Tensor held = std::exchange(memory.held, at::Tensor());
    const bool is_root = held.use_count() == 1 && held.storage().use_count() == 1;
    if (is_root && root.value.Describes(held)) return held;
    memory.held = std::move(held);
  }
  return root.tensor.clone(at::MemoryFormat::Contiguous);
}

}  // namespace torch_xla_lite::interpreter
