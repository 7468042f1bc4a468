#include "torch_xla_lite/csrc/interpreter/plan_maker.h"

#include <ATen/core/Tensor.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/StorageImpl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/aten/kernel_keys.h"
#include "torch_xla_lite/csrc/interpreter/arena.h"
#include "torch_xla_lite/csrc/interpreter/cpu_call.h"
#include "torch_xla_lite/csrc/interpreter/kept_call.h"
#include "torch_xla_lite/csrc/interpreter/memory.h"
#include "torch_xla_lite/csrc/interpreter/schedule.h"
#include "torch_xla_lite/csrc/ops/op_name.h"

namespace torch_xla_lite::interpreter {
namespace {

using Kind = Memory::Kind;
using Keeps = c10::function_ref<bool(const ir::Signature&)>;

constexpr uint32_t kNone = Trace::kUndefined;

bool IsDense(const at::Tensor& tensor, const Memory& memory) {
  return tensor.is_contiguous() && tensor.storage_offset() == 0 &&
         tensor.nbytes() == memory.bytes();
}

bool IsPointwise(std::string_view op) {
  const auto found = ops::FindOp(op);
  return found && found->hasTag(at::Tag::pointwise);
}

}  // namespace

class PlanMaker {
 public:
  // Leaves may be written to in the steps after `last_failing`.
  PlanMaker(const ir::Description& graph, const Trace& trace, uint32_t last_failing)
      : graph_(graph), steps_(trace.steps()), last_failing_(last_failing) {
    FindBases(trace.memories().size());
    FindLastUses(trace.memories().size());
    uintptr_t next = Memory::kNowhere;
    for (const size_t bytes : trace.memories()) {
      memories_.emplace_back(bytes, &next);
      memory_of_.emplace(memories_.back().storage().unsafeGetStorageImpl(), memory_of_.size());
    }
    is_donated_.assign(memories_.size(), false);
    is_overwritten_.assign(memories_.size(), false);
  }

  std::unique_ptr<Plan> Make(Keeps keeps) {
    for (uint32_t i = 0; i < steps_.size(); ++i) {
      for (Trace::Value& value : steps_[i].results) {
        if (value.memory != kNone && place_of_[value.memory] != kNone) {
          value.memory = place_of_[value.memory];
        }
      }
      if (graph_.steps[i].kind == ir::StepKind::kLeaf) {
        AddLeaf(i);
      } else if (IsView(i)) {
        AddResults(i);
      } else if (!keeps(*graph_.steps[i].signature) || !AddKept(i)) {
        AddCall(i);
      }
    }
    AddRoots();
    SetOrder();
    PlaceInArena();
    return std::move(plan_);
  }

  // The last step that may raise an error.
  uint32_t last_failing() const { return last_failing_found_; }

  // Whether a result could have been in the memory of a leaf, but for the steps that may fail.
  bool fits_in_leaf() const { return fits_in_leaf_; }

 private:
  const Trace::Value& ValueAt(ir::Position position) const {
    return steps_[position.step].results[position.output];
  }

  void FindBases(size_t num_memories) {
    base_of_.assign(num_memories, kNone);
    for (uint32_t i = 0; i < steps_.size(); ++i) {
      if (!Moves(i)) continue;
      const uint32_t base = ValueAt(graph_.steps[i].operands[0]).memory;
      for (const Trace::Value& view : steps_[i].results) base_of_[view.memory] = base;
    }
  }

  bool Moves(uint32_t node) const { return CpuCall::Moves(graph_.steps[node]); }

  // Calls `use` with a memory and those in which it is.
  template <typename Use>
  void ForEachIn(uint32_t memory, Use use) const {
    while (memory != kNone) {
      use(memory);
      const uint32_t base = base_of_[memory];
      memory = base == kNone || place_of_[base] == kNone ? base : place_of_[base];
    }
  }

  // For each memory the step that needs it last; for that of a root, the number of steps.
  void FindLastUses(size_t num_memories) {
    place_of_.assign(num_memories, kNone);
    last_use_.resize(num_memories);
    const auto use = [&](ir::Position position, size_t step) {
      ForEachIn(ValueAt(position).memory, [&](uint32_t memory) { last_use_[memory] = step; });
    };
    for (uint32_t i = 0; i < steps_.size(); ++i) {
      for (uint32_t k = 0; k < steps_[i].results.size(); ++k) use({i, k}, i);
      for (const ir::Position operand : graph_.steps[i].operands) use(operand, i);
    }
    for (const ir::Position root : graph_.roots) use(root, steps_.size());
  }

  std::vector<at::Tensor> OperandsOf(uint32_t node) const {
    std::vector<at::Tensor> operands;
    for (const ir::Position operand : graph_.steps[node].operands) {
      operands.push_back(tensors_[operand.step][operand.output]);
    }
    return operands;
  }

  bool IsOperand(uint32_t memory, uint32_t node) const {
    return std::ranges::any_of(graph_.steps[node].operands, [&](const ir::Position operand) {
      return ValueAt(operand).memory == memory;
    });
  }

  // Whether each result of a call is some memory of an operand, which the call does not write to:
  // its tensors say all that it does.
  bool IsView(uint32_t node) const {
    const ir::Step& call = graph_.steps[node];
    if (steps_[node].overwrites || call.num_scalars > 0) return false;
    return std::ranges::all_of(steps_[node].results, [&](const Trace::Value& result) {
      return result.memory != kNone && IsOperand(result.memory, node);
    });
  }

  void AddResults(uint32_t node) {
    std::vector<at::Tensor>& tensors = tensors_.emplace_back();
    for (const Trace::Value& value : steps_[node].results) {
      const bool is_defined = value.memory != kNone;
      tensors.push_back(is_defined ? memories_[value.memory].Tensor(value) : at::Tensor());
    }
  }

  void SetKind(uint32_t node, Kind kind) {
    for (const Trace::Value& result : steps_[node].results) {
      const bool is_new = result.memory != kNone && !IsOperand(result.memory, node);
      if (is_new) memories_[result.memory].kind = kind;
    }
  }

  void AddCall(uint32_t node) {
    const uint32_t leaf = LeafToWriteTo(node);
    if (leaf != kNone) {
      Trace::Value& result = steps_[node].results[0];
      Replace(result.memory, leaf);
      result.memory = leaf;
      steps_[node].overwrites = true;
    }
    Plan::Step step;
    step.node = node;
    step.overwrites = steps_[node].overwrites;
    step.operands = OperandsOf(node);
    step.results = steps_[node].results;
    AddResults(node);
    SetKind(node, Moves(node) ? Kind::kView : Kind::kCall);
    // Views, and copies into views, are there again.
    const bool is_there = graph_.steps[node].signature->written ? !MayShare(node) : Moves(node);
    if (!is_there) last_failing_found_ = node;
    plan_->steps_.push_back(std::move(step));
    Access& access = accesses_.emplace_back();
    access.is_repeatable = leaf != kNone && node <= last_failing_;
    for (const ir::Position operand : graph_.steps[node].operands) {
      ForEachIn(ValueAt(operand).memory, [&](uint32_t in) { access.reads.push_back(in); });
    }
    // A result that is where an operand was is written only if the call overwrites that.
    for (const Trace::Value& result : steps_[node].results) {
      const bool is_there = IsOperand(result.memory, node) && !steps_[node].overwrites;
      if (result.memory != kNone && !is_there) access.writes.push_back(result.memory);
    }
  }

  // Whether a write that has a result of its own may find the value where it writes it, as that of
  // x[i] = x[j] where i is j: then the result is the base.
  bool MayShare(uint32_t node) const {
    const ir::Position base = graph_.steps[node].operands[0],
                       value = graph_.steps[node].operands[1];
    // Of a write through several views, it is there in each run.
    const bool is_written =
        graph_.steps[value.step].kind == ir::StepKind::kWrite && steps_[value.step].overwrites;
    if (steps_[node].overwrites || is_written) return false;
    bool may_share = false;
    ForEachIn(ValueAt(base).memory, [&](uint32_t memory) {
      ForEachIn(ValueAt(value).memory, [&](uint32_t in) { may_share |= in == memory; });
    });
    return may_share;
  }

  // False if the call has no kept kernels.
  bool AddKept(uint32_t node) {
    const CpuCall& call = CpuCall::Of(*graph_.steps[node].signature);
    const std::vector<Part> parts = call.KeptParts(OperandsOf(node));
    const std::vector<Trace::Value> traced = steps_[node].results;
    const auto is_defined = [](const Trace::Value& value) { return value.memory != kNone; };
    const auto num_results = static_cast<size_t>(std::ranges::count_if(traced, is_defined));
    if (parts.empty() || parts.size() != num_results) return false;
    const auto is_traced = [&](const Part& part) { return is_defined(traced.at(part.output)); };
    if (!std::ranges::all_of(parts, is_traced)) return false;
    std::vector<Plan::Step> steps;
    std::vector<Trace::Value> values = traced;
    const Uses uses = UsesOf(node);
    for (const Part& part : parts) {
      Trace::Value& value = values.at(part.output);
      const uint32_t dead = DeadOperand(node, part, value, uses);
      if (dead != kNone) value.memory = dead;
      Plan::Step& step = steps.emplace_back();
      step.node = node;
      step.kept = call.Keep(part, memories_[value.memory].Tensor(value));
      if (step.kept == nullptr) return false;
    }
    for (size_t i = 0; i < traced.size(); ++i) {
      if (traced[i].memory != values[i].memory) Replace(traced[i].memory, values[i].memory);
    }
    steps_[node].results = std::move(values);
    const bool is_safe = std::ranges::all_of(parts, [&](const Part& part) {
      return IsPointwise(part.op) && c10::isFloatingType(traced[part.output].dtype);
    });
    if (!is_safe) last_failing_found_ = node;
    for (size_t i = 0; i < parts.size(); ++i) {
      Access& access = accesses_.emplace_back(AccessOf(parts[i], node));
      access.is_movable = is_safe;
      Follow(&steps[i].kept->kernel(), access);
    }
    AddResults(node);
    SetKind(node, Kind::kArena);
    std::ranges::move(steps, std::back_inserter(plan_->steps_));
    return true;
  }

  // What a call has of a memory: an operand that is there, and how many are there or in its views.
  struct Use {
    const Trace::Value* value = nullptr;
    std::ptrdiff_t count = 0;
  };
  using Uses = std::unordered_map<uint32_t, Use>;

  Uses UsesOf(uint32_t node) const {
    Uses uses;
    for (const ir::Position operand : graph_.steps[node].operands) {
      const Trace::Value& value = ValueAt(operand);
      ForEachIn(value.memory, [&](uint32_t memory) { ++uses[memory].count; });
      if (value.memory != kNone) uses[value.memory].value = &value;
    }
    return uses;
  }

  // The memory of an operand in which a part of a call may have its result instead: nothing needs
  // the operand later, and each element of the result needs of that memory what is in its own
  // place. A call on lists has as many parts as operands.
  uint32_t DeadOperand(uint32_t node, const Part& part, const Trace::Value& result,
                       const Uses& uses) {
    if (!IsPointwise(part.op) || uses.contains(result.memory)) return kNone;
    for (const uint32_t memory : MemoriesOf(part)) {
      const auto use = uses.find(memory);
      if (use == uses.end() || use->second.value == nullptr || last_use_[memory] != node) continue;
      const Kind kind = memories_[memory].kind;
      const bool is_leaf = kind == Kind::kLeaf;
      if (kind == Kind::kView || (is_leaf && !is_donated_[memory])) continue;
      const Trace::Value& value = *use->second.value;
      if (!IsPlaceFor(result, value)) continue;
      if (!NeedsOnlyOwnPlaces(part, value, use->second.count)) continue;
      if (!is_leaf || node > last_failing_) return memory;
      fits_in_leaf_ = true;
    }
    return kNone;
  }

  // Those of its tensors, in the order of its arguments.
  std::vector<uint32_t> MemoriesOf(const Part& part) const {
    std::vector<uint32_t> memories;
    for (const c10::IValue& argument : part.arguments) {
      if (!argument.isTensor() || !argument.toTensor().defined()) continue;
      const auto found = memory_of_.find(argument.toTensor().storage().unsafeGetStorageImpl());
      if (found != memory_of_.end()) memories.push_back(found->second);
    }
    return memories;
  }

  // Whether a value fills its memory, and a result like it could.
  bool IsPlaceFor(const Trace::Value& result, const Trace::Value& value) const {
    const Memory& memory = memories_[value.memory];
    return value.dtype == result.dtype && value.sizes == result.sizes &&
           value.strides == result.strides && memory.bytes() > 0 &&
           IsDense(memory.Tensor(value), memory);
  }

  // The leaf in whose memory a call that would copy it may write: nothing else needs it. If what
  // follows fails, the graph has to compute the same once more.
  uint32_t LeafToWriteTo(uint32_t node) {
    const ir::Step& call = graph_.steps[node];
    if (call.operands.empty() || steps_[node].overwrites) return kNone;
    const CpuCall& cpu_call = CpuCall::Of(*call.signature);
    if (!cpu_call.rewrites() || steps_[node].results.size() != 1) return kNone;
    const Trace::Value &base = ValueAt(call.operands[0]), &result = steps_[node].results[0];
    if (base.memory == kNone || memories_[base.memory].kind != Kind::kLeaf) return kNone;
    const bool is_dead = is_donated_[base.memory] && last_use_[base.memory] == node;
    if (!is_dead || result.memory == kNone || IsOperand(result.memory, node)) return kNone;
    if (NumUses(base.memory, node) > 1 || !IsPlaceFor(result, base)) return kNone;
    if (node > last_failing_ || IsRepeatable(node)) return base.memory;
    fits_in_leaf_ = true;
    return kNone;
  }

  std::ptrdiff_t NumUses(uint32_t memory, uint32_t node) const {
    std::ptrdiff_t count = 0;
    for (const ir::Position operand : graph_.steps[node].operands) {
      ForEachIn(ValueAt(operand).memory, [&](uint32_t used) { count += used == memory ? 1 : 0; });
    }
    return count;
  }

  // Whether a graph in which a call has written to its first operand, a leaf, computes the same:
  // no step reads the leaf, and none the result before the last write to it.
  bool IsRepeatable(uint32_t node) const {
    const uint32_t leaf = ValueAt(graph_.steps[node].operands[0]).memory;
    const uint32_t written = steps_[node].results[0].memory;
    bool is_read = false;
    for (uint32_t i = 0; i < steps_.size(); ++i) {
      if (i == node || graph_.steps[i].kind == ir::StepKind::kLeaf) continue;
      if (IsOperand(leaf, i)) return false;
      if (!IsOperand(written, i)) continue;
      const bool writes = steps_[i].overwrites;
      const bool rewrites = CpuCall::Of(*graph_.steps[i].signature).rewrites();
      if (writes && (is_read || !rewrites || NumUses(written, i) > 1)) return false;
      is_read = is_read || !writes;
    }
    return true;
  }

  // Whether all that a call needs of a memory, `count` times, is a value that fills it, for a part
  // of the call.
  bool NeedsOnlyOwnPlaces(const Part& part, const Trace::Value& value, std::ptrdiff_t count) const {
    const at::Tensor whole = memories_[value.memory].Tensor(value);
    std::ptrdiff_t uses = 0;
    for (const c10::IValue& argument : part.arguments) {
      if (!argument.isTensor() || !argument.toTensor().defined()) continue;
      const at::Tensor& tensor = argument.toTensor();
      if (!tensor.storage().is_alias_of(whole.storage())) continue;
      if (!value.Describes(tensor)) return false;
      ++uses;
    }
    return uses == count;
  }

  void Replace(uint32_t memory, uint32_t by) {
    place_of_[memory] = by;
    last_use_[by] = last_use_[memory];
    if (memories_[by].kind != Kind::kLeaf) return;
    is_overwritten_[by] = true;
  }

  Access AccessOf(const Part& part, uint32_t node) const {
    Access access;
    for (const uint32_t used : MemoriesOf(part)) {
      ForEachIn(used, [&](uint32_t memory) { access.reads.push_back(memory); });
    }
    access.writes.push_back(steps_[node].results[part.output].memory);
    return access;
  }

  // Tells the memories that a kernel needs where it has them.
  void Follow(KeptKernel* kernel, const Access& access) {
    std::vector<uint32_t> used = access.reads;
    used.insert(used.end(), access.writes.begin(), access.writes.end());
    std::ranges::sort(used);
    used.erase(std::ranges::unique(used).begin(), used.end());
    const std::vector<const void*> places = kernel->places();
    for (const uint32_t memory : used) memories_[memory].Follow(kernel, places);
  }

  void AddLeaf(uint32_t node) {
    AddResults(node);
    const uint32_t memory = steps_[node].results[0].memory;
    memories_[memory].kind = Kind::kLeaf;
    is_donated_[memory] = graph_.steps[node].donated;
    leaves_.push_back(memory);
  }

  void AddRoots() {
    for (const ir::Position position : graph_.roots) {
      const Trace::Value& value = ValueAt(position);
      plan_->roots_.push_back({value, tensors_[position.step][position.output], false, {}});
    }
    std::vector<bool> is_taken(memories_.size());
    for (const uint32_t leaf : leaves_) plan_->overwritten_.push_back(is_overwritten_[leaf]);
    for (Plan::Root& root : plan_->roots_) {
      const uint32_t memory = root.value.memory;
      const bool fills = !is_taken[memory] && IsDense(root.tensor, memories_[memory]);
      is_taken[memory] = is_taken[memory] || fills;
      if (is_overwritten_[memory] && fills)
        root.leaf = std::ranges::find(leaves_, memory) - leaves_.begin();
      const Kind kind = memories_[memory].kind;
      root.owns_memory = kind != Kind::kLeaf && kind != Kind::kView && fills;
      if (root.owns_memory && memories_[memory].kind == Kind::kArena) {
        memories_[memory].kind = Kind::kRoot;
      }
    }
  }

  void SetOrder() {
    std::vector<Plan::Step> steps;
    std::vector<Access> accesses;
    for (const uint32_t i : Schedule(accesses_)) {
      steps.push_back(std::move(plan_->steps_[i]));
      accesses.push_back(std::move(accesses_[i]));
    }
    plan_->steps_ = std::move(steps);
    accesses_ = std::move(accesses);
  }

  void PlaceInArena() {
    std::vector<Plan::Step>& steps = plan_->steps_;
    // For each memory the step that needs it last; none for that of a root.
    std::vector<size_t> last_step(memories_.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      for (const uint32_t memory : accesses_[i].reads) last_step[memory] = i;
      for (const uint32_t memory : accesses_[i].writes) last_step[memory] = i;
    }
    std::vector<uint32_t> root_of(memories_.size());
    for (uint32_t i = 0; i < plan_->roots_.size(); ++i) {
      const Plan::Root& root = plan_->roots_[i];
      if (root.owns_memory) root_of[root.value.memory] = i;
      ForEachIn(root.value.memory, [&](uint32_t memory) { last_step[memory] = steps.size(); });
    }
    std::vector<std::vector<uint32_t>> ends(steps.size() + 1);
    for (uint32_t i = 0; i < memories_.size(); ++i) ends[last_step[i]].push_back(i);
    std::vector<bool> is_placed(memories_.size());
    Arena arena;
    Plan::Step* first_write = nullptr;  // To a leaf. What may fail comes before.
    for (size_t i = 0; i < steps.size(); ++i) {
      const std::vector<uint32_t>& writes = accesses_[i].writes;
      const bool writes_to_leaf =
          !accesses_[i].is_repeatable && std::ranges::any_of(writes, [&](uint32_t memory) -> bool {
            return is_overwritten_[memory];
          });
      if (writes_to_leaf && first_write == nullptr) first_write = &steps[i];
      for (const uint32_t written : writes) {
        if (is_placed[written]) continue;
        is_placed[written] = true;
        Memory& memory = memories_[written];
        if (memory.kind == Kind::kArena) memory.offset = arena.Take(memory.bytes());
        if (memory.kind != Kind::kRoot) continue;
        (first_write == nullptr ? &steps[i] : first_write)->roots.push_back(root_of[written]);
      }
      for (const uint32_t dead : ends[i]) {
        Memory& memory = memories_[dead];
        if (memory.kind == Kind::kArena) arena.Return(memory.offset, memory.bytes());
        if (memory.kind == Kind::kCall) steps[i].releases.push_back(dead);
      }
    }
    plan_->first_write_ = first_write;
    plan_->SetArena(arena.size());
  }

  const aten::KernelKeysGuard keys_;
  const ir::Description& graph_;
  // Of the traced run, with the memories that the plan has.
  std::vector<Trace::Step> steps_;
  std::unique_ptr<Plan> plan_{new Plan};
  std::vector<Memory>& memories_ = plan_->memories_;
  std::unordered_map<const c10::StorageImpl*, uint32_t> memory_of_;
  std::vector<Access> accesses_;  // Of each step of the plan.
  const uint32_t last_failing_;
  uint32_t last_failing_found_ = 0;
  bool fits_in_leaf_ = false;
  // Of each step, its results.
  std::vector<std::vector<at::Tensor>> tensors_;
  std::vector<uint32_t> leaves_;  // Their memories.
  // Of each memory:
  std::vector<uint32_t> base_of_;  // That of a view which moves.
  std::vector<size_t> last_use_;
  std::vector<uint32_t> place_of_;  // The memory in which its values are instead.
  std::vector<bool> is_donated_;
  std::vector<bool> is_overwritten_;  // A leaf.
};

std::unique_ptr<Plan> MakePlan(const ir::Description& graph, const Trace& trace, Keeps keeps) {
  constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();
  PlanMaker maker(graph, trace, /*last_failing=*/kNever);
  std::unique_ptr<Plan> plan = maker.Make(keeps);
  return maker.fits_in_leaf() ? PlanMaker(graph, trace, maker.last_failing()).Make(keeps)
                              : std::move(plan);
}

}  // namespace torch_xla_lite::interpreter
