#include "torch_xla_lite/csrc/interpreter/interpreter.h"

#include <ATen/EmptyTensor.h>
#include <c10/util/Exception.h>
#include <c10/util/ScopeExit.h>

#include <algorithm>
#include <cstring>
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

// The memory of the result holds its values, in row-major order: torch may leave a conjugation or a
// change of sign to the reader, and has zeros without memory.
at::Tensor Dense(const at::Tensor& tensor) {
  const aten::KernelKeysGuard keys;
  if (tensor._is_zerotensor()) return Zeros(tensor.sizes(), tensor.scalar_type());
  return tensor.resolve_conj().resolve_neg().contiguous();
}

// The same, in memory that nothing else refers to.
at::Tensor Owned(at::Tensor tensor) {
  const aten::KernelKeysGuard keys;
  tensor = Dense(tensor);
  const bool is_shared = tensor.use_count() > 1 || tensor.storage().use_count() > 1;
  return is_shared || tensor.storage_offset() != 0 ? tensor.clone(at::MemoryFormat::Contiguous)
                                                   : tensor;
}

// Which results each call is the last to need.
class Lifetimes {
 public:
  explicit Lifetimes(const ir::Graph& graph, const ir::Description& description)
      : graph_(graph), steps_(description.steps), last_use_(steps_.size()), freed_(steps_.size()) {
    for (uint32_t i = 0; i < steps_.size(); ++i) {
      last_use_[i] = i;
      for (const ir::Position operand : steps_[i].operands) last_use_[operand.step] = i;
    }
    for (const ir::Position root : description.roots) last_use_[root.step] = kForEver;
    for (uint32_t i = 0; i < steps_.size(); ++i) {
      if (last_use_[i] == kForEver) continue;
      freed_[i].next = std::exchange(freed_[last_use_[i]].first, i);
    }
  }

  // Calls `free` with each step whose results are not needed after step `i`, which may be `i`.
  template <typename Free>
  void ForEachFreedAfter(uint32_t i, Free free) const {
    for (uint32_t step = freed_[i].first; step != kForEver; step = freed_[step].next) free(step);
  }

  // A write through several views is a write for each: y = v(x), y' = w(y, value), x' = v(x, y').
  // If step `i` is such a w, this is the base x, which it may overwrite, as the next step does.
  std::optional<ir::Position> BaseOfNext(uint32_t i) const {
    if (i + 1 == steps_.size() || !IsWrite(steps_[i]) || !IsWrite(steps_[i + 1])) return {};
    const ir::Step& outer = steps_[i + 1];
    const ir::Position viewed = steps_[i].operands[0], base = outer.operands[0];
    const ir::Step& view = steps_[viewed.step];
    const bool is_through =
        outer.operands[1].step == i && view.signature != nullptr && view.operands.size() == 1 &&
        view.operands[0].step == base.step && view.operands[0].output == base.output &&
        view.signature->words == outer.signature->words &&
        std::ranges::equal(graph_.nodes[viewed.step]->scalars(), graph_.nodes[i + 1]->scalars()) &&
        last_use_[viewed.step] == i && last_use_[i] == i + 1 && last_use_[base.step] == i + 1;
    return is_through ? std::optional(base) : std::nullopt;
  }

 private:
  static constexpr uint32_t kForEver = std::numeric_limits<uint32_t>::max();

  static bool IsWrite(const ir::Step& step) {
    return step.signature != nullptr && step.signature->op.starts_with("write:");
  }

  const ir::Graph& graph_;
  const std::vector<ir::Step>& steps_;
  std::vector<uint32_t> last_use_;
  // The steps that each step frees: a list, in which each step is once.
  struct Freed {
    uint32_t first = kForEver;
    uint32_t next = kForEver;
  };
  std::vector<Freed> freed_;
};

// The op, and the dtypes of its operands and results.
std::string DtypesOf(const ir::Signature& signature, std::span<const at::Tensor> operands) {
  std::string key = signature.op;
  for (const at::Tensor& operand : operands) key += static_cast<char>(operand.scalar_type());
  for (const ir::Shape* const output : signature.outputs) {
    key += static_cast<char>(output == nullptr ? c10::ScalarType::Undefined
                                               : tensor::ScalarTypeOf(output));
  }
  return key;
}

}  // namespace

Interpreter::Interpreter(const RunLowering& run_lowering, std::function<bool()> draws_threefry)
    : run_lowering_(run_lowering),
      draws_threefry_(std::move(draws_threefry)),
      padded_draws_(run_lowering) {}

bool Interpreter::RunsLowering(const ir::Signature& call) const {
  const bool has_kernel = CpuCall::Of(call).is_possible() && !lowered_.contains(call.op);
  return !has_kernel && !call.is_zeros && !PaddedDraws::Has(call.op);
}

std::vector<at::Tensor> Interpreter::Run(const ir::Graph& graph, std::vector<at::Tensor> leaves,
                                         Trace* trace) {
  const device::BlockScope blocks;
  const ir::Description description = ir::Describe(graph.key);
  const Lifetimes lifetimes(graph, description);
  std::vector<std::vector<at::Tensor>> results(description.steps.size());
  // Whether nothing else needs the memory of the call's first operand. Leaves have other owners.
  const auto may_overwrite = [&](const at::Tensor& first, uint32_t i) {
    if (first.use_count() > 1 || !first.has_storage() || first._is_zerotensor()) return false;
    size_t owners = 1;
    // So few that the cost of a chain of writes stays linear: the longest are copied.
    constexpr uint32_t kMostWrites = 64;
    const uint32_t last = i + kMostWrites;
    for (auto base = lifetimes.BaseOfNext(i); base && i < last; base = lifetimes.BaseOfNext(++i)) {
      const at::Tensor& tensor = results[base->step][base->output];
      if (tensor.use_count() == 1 && tensor.is_alias_of(first)) ++owners;
    }
    return first.storage().use_count() == owners;
  };
  size_t leaf = 0;
  for (uint32_t i = 0; i < results.size(); ++i) {
    const ir::Step& step = description.steps[i];
    if (step.signature == nullptr) {
      results[i] = {leaves[leaf++]};
      if (trace != nullptr) trace->AddLeaf(results[i][0]);
      continue;
    }
    std::vector<at::Tensor> operands;
    operands.reserve(step.operands.size());
    for (const ir::Position operand : step.operands) {
      operands.push_back(results[operand.step][operand.output]);
    }
    lifetimes.ForEachFreedAfter(i, [&](uint32_t done) { results[done].clear(); });
    const bool overwrites = !operands.empty() && may_overwrite(operands[0], i);
    if (trace != nullptr) trace->BeginCall(step.operands, operands, overwrites);
    results[i] = RunCall(*graph.nodes[i], std::move(operands), overwrites);
    if (trace != nullptr) trace->EndCall(results[i]);
  }
  std::vector<at::Tensor> roots;
  for (const ir::Position root : description.roots) {
    roots.push_back(results[root.step][root.output]);
  }
  results.clear();
  for (at::Tensor& root : roots) root = Owned(std::move(root));
  return roots;
}

std::unique_ptr<Plan> Interpreter::MakePlan(const ir::Graph& graph, const Trace& trace) const {
  return interpreter::MakePlan(ir::Describe(graph.key), trace, [this](const ir::Signature& call) {
    return !call.is_zeros && !lowered_.contains(call.op);
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
  const bool is_threefry = !call.draws() || draws_threefry_();
  if (call.is_possible() && is_threefry && !lowered_.contains(signature.op)) {
    const Width width = call.width();
    const auto note_width = c10::make_scope_exit([&] {
      if (call.width() != width) widths_.emplace(DtypesOf(signature, operands), call.width());
    });
    try {
      return call.Run(operands, node.scalars(), may_overwrite);
    } catch (const aten::UnexpectedResults&) {
      call.GiveUp();
    } catch (const c10::Error& error) {
      if (!MayBeRefusal(error)) throw;
    }
  }
  if (is_threefry) {
    if (auto drawn = padded_draws_.Run(node, operands)) return *std::move(drawn);
  }
  for (at::Tensor& operand : operands) operand = Dense(operand);
  return run_lowering_(node, operands);
}

}  // namespace torch_xla_lite::interpreter
