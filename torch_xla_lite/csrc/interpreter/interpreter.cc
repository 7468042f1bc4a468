#include "torch_xla_lite/csrc/interpreter/interpreter.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/Exception.h>
#include <c10/util/ScopeExit.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "torch_xla_lite/csrc/aten/aten_call.h"
#include "torch_xla_lite/csrc/aten/kernel_keys.h"
#include "torch_xla_lite/csrc/device/block_allocator.h"
#include "torch_xla_lite/csrc/interpreter/cpu_call.h"
#include "torch_xla_lite/csrc/interpreter/plan_maker.h"
#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/key.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"

namespace torch_xla_lite::interpreter {
namespace {

at::Tensor Zeros(c10::IntArrayRef sizes, c10::ScalarType dtype) {
  at::Tensor zeros(at::detail::empty_cpu(sizes, dtype));
  std::memset(zeros.mutable_data_ptr(), 0, zeros.nbytes());
  return zeros;
}

void DropView(void* view) { delete static_cast<at::Tensor*>(view); }

// A view as a tensor whose storage begins where the view does.
at::Tensor Apart(const at::Tensor& view) {
  if (view.is_conj() || view.is_neg() || view._is_zerotensor()) return view;
  const size_t bytes =
      at::detail::computeStorageNbytes(view.sizes(), view.strides(), view.element_size());
  c10::DataPtr data(view.mutable_data_ptr(), new at::Tensor(view), &DropView, view.device());
  c10::Storage storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes, std::move(data),
      /*allocator=*/nullptr, /*resizable=*/false));
  at::Tensor apart(at::detail::make_tensor_base<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), view.dtype()));
  apart.unsafeGetTensorImpl()->set_sizes_and_strides(view.sizes(), view.strides());
  return apart;
}

bool IsApart(const at::Tensor& tensor) {
  return tensor.storage().data_ptr().get_deleter() == &DropView;
}

// The memory of the result holds its values, in row-major order: torch may leave a conjugation or a
// change of sign to the reader, and has zeros without memory.
at::Tensor Dense(const at::Tensor& tensor) {
  const aten::KernelKeysGuard keys;
  if (tensor._is_zerotensor()) return Zeros(tensor.sizes(), tensor.scalar_type());
  return tensor.resolve_conj().resolve_neg().contiguous();
}

bool FillsMemory(const at::Tensor& tensor) {
  return tensor.has_storage() && tensor.nbytes() == tensor.storage().nbytes() && !IsApart(tensor);
}

// Whether its memory is that of a leaf, which a buffer owns.
bool IsBorrowed(const at::Tensor& tensor) {
  return tensor.has_storage() && tensor.storage().data_ptr().get_context() == nullptr;
}

// The same, in memory that nothing else refers to.
at::Tensor Owned(at::Tensor tensor) {
  const aten::KernelKeysGuard keys;
  tensor = Dense(tensor);
  const bool is_part = IsApart(tensor) || (IsBorrowed(tensor) && !FillsMemory(tensor));
  const bool is_shared = tensor.use_count() > 1 || tensor.storage().use_count() > 1 || is_part;
  return is_shared || tensor.storage_offset() != 0 ? tensor.clone(at::MemoryFormat::Contiguous)
                                                   : tensor;
}

// Which results each call is the last to need.
class Lifetimes {
 public:
  explicit Lifetimes(const ir::Graph& graph) : graph_(graph), steps_(graph.description().steps) {
    for (uint32_t i = 0; i < steps_.size(); ++i) {
      first_.push_back(last_use_.size());
      const ir::Signature* const call = steps_[i].signature;
      last_use_.insert(last_use_.end(), call == nullptr ? 1 : call->outputs.size(), i);
      for (const ir::Position operand : steps_[i].operands) LastUse(operand) = i;
    }
    for (const ir::Position root : graph.description().roots) LastUse(root) = kForEver;
    freed_.resize(steps_.size(), {kForEver, 0});
    next_freed_.resize(last_use_.size());
    for (uint32_t i = 0; i < steps_.size(); ++i) {
      const uint32_t end = i + 1 < steps_.size() ? first_[i + 1] : last_use_.size();
      for (uint32_t value = first_[i]; value < end; ++value) {
        if (last_use_[value] == kForEver) continue;
        ir::Position& freed = freed_[last_use_[value]];
        next_freed_[value] = std::exchange(freed, ir::Position{i, value - first_[i]});
      }
    }
  }

  // Calls `free` with each result that is not needed after step `i`, which may be one of `i`.
  template <typename Free>
  void ForEachFreedAfter(uint32_t i, Free free) const {
    for (ir::Position at = freed_[i]; at.step != kForEver; at = next_freed_[ValueOf(at)]) free(at);
  }

  // A write through several views is a write for each: y = v(x), y' = w(y, value), x' = v(x, y').
  // If step `i` is such a w, this is the base x, which it may overwrite, as the next step does.
  std::optional<ir::Position> BaseOfNext(uint32_t i) const {
    if (i + 1 == steps_.size() || steps_[i].kind != ir::StepKind::kWrite ||
        steps_[i + 1].kind != ir::StepKind::kWrite)
      return {};
    const ir::Step& outer = steps_[i + 1];
    const ir::Position viewed = steps_[i].operands[0], base = outer.operands[0];
    const ir::Step& view = steps_[viewed.step];
    const bool is_through =
        outer.operands[1].step == i && view.kind == ir::StepKind::kCall &&
        view.operands.size() == 1 && view.operands[0].step == base.step &&
        view.operands[0].output == base.output && view.signature->words == outer.signature->words &&
        std::ranges::equal(graph_.nodes[viewed.step]->scalars(), graph_.nodes[i + 1]->scalars()) &&
        LastUse(viewed) == i && LastUse({i, 0}) == i + 1 && LastUse(base) == i + 1;
    return is_through ? std::optional(base) : std::nullopt;
  }

 private:
  static constexpr uint32_t kForEver = std::numeric_limits<uint32_t>::max();

  size_t ValueOf(ir::Position at) const { return first_[at.step] + at.output; }
  uint32_t& LastUse(ir::Position at) { return last_use_[ValueOf(at)]; }
  uint32_t LastUse(ir::Position at) const { return last_use_[ValueOf(at)]; }

  const ir::Graph& graph_;
  const std::vector<ir::Step>& steps_;
  std::vector<uint32_t> first_;     // For each step: its first value.
  std::vector<uint32_t> last_use_;  // For each value: a step.
  // The values that each step frees: a list, in which each value is once.
  std::vector<ir::Position> freed_, next_freed_;
};

// The results of the steps of a run, each as long as a step needs it.
class Values {
 public:
  // Donated leaves may be overwritten from step `first_safe` on.
  Values(const ir::Graph& graph, size_t first_safe)
      : description_(graph.description()),
        lifetimes_(graph),
        first_safe_(first_safe),
        results_(description_.steps.size()) {}

  const at::Tensor& SetLeaf(uint32_t i, const Interpreter::Leaf& leaf) {
    results_[i] = {leaf.tensor};
    const bool is_donated = description_.steps[i].donated && leaf.is_exclusive;
    if (!is_donated) kept_.push_back(leaf.tensor);
    if (is_donated && i < first_safe_) kept_until_safe_.push_back(leaf.tensor);
    return results_[i][0];
  }

  // Those of a call. What no later one needs has no other owner then.
  std::vector<at::Tensor> TakeOperands(uint32_t i) {
    if (i >= first_safe_) kept_until_safe_.clear();
    std::vector<at::Tensor> operands;
    operands.reserve(description_.steps[i].operands.size());
    for (const ir::Position at : description_.steps[i].operands) operands.push_back(At(at));
    lifetimes_.ForEachFreedAfter(i, [&](ir::Position done) {
      if (done.step != i) At(done).reset();
    });
    return operands;
  }

  void Set(uint32_t i, std::vector<at::Tensor> results) {
    results_[i] = std::move(results);
    lifetimes_.ForEachFreedAfter(i, [&](ir::Position done) {
      if (done.step == i) At(done).reset();
    });
  }

  // Whether nothing but step `i` needs the memory of its operand.
  bool MayOverwrite(const at::Tensor& operand, uint32_t i) {
    if (operand.use_count() > 1 || !operand.has_storage() || operand._is_zerotensor()) return false;
    if (IsApart(operand) || MayOverlap(operand)) return false;
    if (IsBorrowed(operand)) {
      return operand.numel() > 0 && FillsMemory(operand) && operand.storage().use_count() == 1;
    }
    size_t owners = 1;
    // So few that the cost of a chain of writes stays linear: the longest are copied.
    constexpr uint32_t kMostWrites = 64;
    const uint32_t last = i + kMostWrites;
    for (auto base = lifetimes_.BaseOfNext(i); base && i < last;
         base = lifetimes_.BaseOfNext(++i)) {
      const at::Tensor& tensor = At(*base);
      if (MayOverlap(tensor)) return false;
      if (tensor.use_count() == 1 && tensor.is_alias_of(operand)) ++owners;
    }
    return operand.storage().use_count() == owners;
  }

  std::vector<at::Tensor> TakeRoots() {
    std::vector<at::Tensor> roots;
    for (const ir::Position root : description_.roots) roots.push_back(At(root));
    results_.clear();
    MakeOwned(roots, std::identity());
    return roots;
  }

  // All results that are there, and the operands that a call which failed has taken.
  std::vector<Interpreter::Computed> TakeComputed(uint32_t failed,
                                                  std::vector<at::Tensor> operands) {
    for (size_t i = 0; i < operands.size(); ++i) {
      At(description_.steps[failed].operands[i]) = std::move(operands[i]);
    }
    operands.clear();
    std::vector<Interpreter::Computed> computed;
    for (uint32_t i = 0; i < failed; ++i) {
      if (description_.steps[i].kind == ir::StepKind::kLeaf) continue;
      for (uint32_t k = 0; k < results_[i].size(); ++k) {
        if (results_[i][k].defined()) computed.push_back({{i, k}, std::move(results_[i][k])});
      }
    }
    results_.clear();
    MakeOwned(computed, &Interpreter::Computed::tensor);
    return computed;
  }

 private:
  // First what is a part of a memory: then nothing else has that of a tensor that fills it.
  template <typename T, typename Tensor>
  static void MakeOwned(std::vector<T>& values, Tensor tensor_of) {
    for (const bool fills : {false, true}) {
      for (T& value : values) {
        at::Tensor& tensor = std::invoke(tensor_of, value);
        if (FillsMemory(tensor) == fills) tensor = Owned(std::move(tensor));
      }
    }
  }

  at::Tensor& At(ir::Position position) { return results_[position.step][position.output]; }

  const ir::Description& description_;
  const Lifetimes lifetimes_;
  const size_t first_safe_;
  std::vector<std::vector<at::Tensor>> results_;
  // Second references, which keep leaves from being overwritten.
  std::vector<at::Tensor> kept_, kept_until_safe_;
};

// The op, and the dtypes of its operands and results.
std::string DtypesOf(const ir::Signature& signature, std::span<const at::Tensor> operands) {
  std::string key = signature.op + (signature.written ? '=' : ' ');
  for (const at::Tensor& operand : operands) key += static_cast<char>(operand.scalar_type());
  for (const ir::Shape* const output : signature.outputs) {
    key += static_cast<char>(output == nullptr ? c10::ScalarType::Undefined
                                               : tensor::ScalarTypeOf(output));
  }
  return key;
}

}  // namespace

Interpreter::Interpreter(const RunLowering& run_lowering, std::function<bool()> draws_threefry)
    : run_lowering_(run_lowering), draws_threefry_(std::move(draws_threefry)) {}

bool Interpreter::IsLowered(const ir::Signature& call) const {
  return !call.written && lowered_.contains(call.op);
}

bool Interpreter::RunsLowering(const ir::Signature& call) const {
  const bool has_kernel = CpuCall::Of(call).is_possible() && !IsLowered(call);
  return !has_kernel && !call.is_zeros;
}

// No step from this one on is expected to fail.
size_t Interpreter::FirstSafeStep(const ir::Description& graph) const {
  const auto may_fail = [this](const ir::Step& step) {
    return step.kind != ir::StepKind::kLeaf &&
           (IsLowered(*step.signature) || CpuCall::Of(*step.signature).may_fail());
  };
  size_t first = graph.steps.size();
  while (first > 0 && !may_fail(graph.steps[first - 1])) --first;
  return first;
}

std::vector<at::Tensor> Interpreter::Run(const ir::Graph& graph, std::vector<Leaf> leaves,
                                         Trace* trace) {
  const device::BlockScope blocks;
  const std::vector<ir::Step>& steps = graph.description().steps;
  const bool may_write = std::ranges::any_of(leaves, &Leaf::is_exclusive);
  Values values(graph, may_write ? FirstSafeStep(graph.description()) : steps.size());
  has_written_ = false;
  size_t leaf = 0;
  for (uint32_t i = 0; i < steps.size(); ++i) {
    const ir::Step& step = steps[i];
    if (step.kind == ir::StepKind::kLeaf) {
      const at::Tensor& tensor = values.SetLeaf(i, std::exchange(leaves[leaf++], {}));
      if (trace != nullptr) trace->AddLeaf(tensor);
      continue;
    }
    std::vector<at::Tensor> operands = values.TakeOperands(i);
    const size_t most = CpuCall::Of(*step.signature).num_overwritten();
    const auto first = std::span(operands).first(std::min(operands.size(), most));
    const auto is_free = [&](const at::Tensor& operand) { return values.MayOverwrite(operand, i); };
    const bool overwrites = !first.empty() && std::ranges::all_of(first, is_free);
    if (trace != nullptr) trace->BeginCall(step.operands, operands, overwrites ? first.size() : 0);
    has_written_ = has_written_ || (overwrites && std::ranges::any_of(first, IsBorrowed));
    std::vector<at::Tensor> results, held;
    if (has_written_) held = operands;
    try {
      results = RunCall(*graph.nodes[i], std::move(operands), overwrites);
    } catch (...) {
      if (has_written_) computed_ = values.TakeComputed(i, std::move(held));
      throw;
    }
    if (trace != nullptr) {
      if (CpuCall::Moves(step)) std::ranges::transform(results, results.begin(), Apart);
      trace->EndCall(results);
    }
    values.Set(i, std::move(results));
  }
  return values.TakeRoots();
}

std::unique_ptr<Plan> Interpreter::MakePlan(const ir::Graph& graph, const Trace& trace) const {
  return interpreter::MakePlan(graph.description(), trace, [this](const ir::Signature& call) {
    return !call.is_zeros && !IsLowered(call);
  });
}

std::vector<at::Tensor> Interpreter::Run(Plan& plan, const ir::Graph& graph,
                                         std::span<const Plan::Leaf> leaves) {
  return plan.Run(graph, leaves,
                  [this](const ir::Node& call, std::vector<at::Tensor> operands, bool overwrites) {
                    return RunCall(call, std::move(operands), overwrites);
                  });
}

std::vector<at::Tensor> Interpreter::RunCall(const ir::Node& node, std::vector<at::Tensor> operands,
                                             bool may_overwrite) {
  const ir::Signature& signature = node.signature();
  // Memory that is not initialised is zeros here.
  if (signature.is_zeros) {
    const ir::Shape* shape = signature.outputs[0];
    return {Zeros(shape->dims(), tensor::ScalarTypeOf(shape))};
  }
  const CpuCall& call = CpuCall::Of(signature);
  if (!call.has_run() && !widths_.empty()) {
    const auto known = widths_.find(DtypesOf(signature, operands));
    if (known != widths_.end()) call.set_width(known->second);
  }
  const bool is_possible = call.is_possible() && (!call.draws() || draws_threefry_());
  if (is_possible && !IsLowered(signature)) {
    const Width width = call.width();
    const auto note_width = c10::make_scope_exit([&] {
      if (call.width() != width) widths_.emplace(DtypesOf(signature, operands), call.width());
    });
    try {
      return call.Run(operands, node.scalars(), may_overwrite);
    } catch (const aten::UnexpectedResults&) {
      call.GiveUp();
    } catch (const c10::LinAlgError&) {
      // The lowering says so, too, and its result is safe for the kernels that follow. After an
      // index out of range they would read beyond their operands: those may check none.
    } catch (const c10::Error& error) {
      if (!MayBeRefusal(error)) throw;
    }
  }
  for (at::Tensor& operand : operands) operand = Dense(operand);
  return run_lowering_(node, operands);
}

}  // namespace torch_xla_lite::interpreter
