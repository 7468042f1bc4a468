#include "torch_xla_lite/csrc/interpreter/cpu_call.h"

#include <ATen/core/stack.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarType.h>
#include <c10/util/SmallVector.h>
#include <c10/util/complex.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/aten/kernel_keys.h"
#include "torch_xla_lite/csrc/interpreter/numbers.h"
#include "torch_xla_lite/csrc/interpreter/opmath.h"
#include "torch_xla_lite/csrc/interpreter/recurrence.h"
#include "torch_xla_lite/csrc/interpreter/recurrent_cell.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/ops/call.h"
#include "torch_xla_lite/csrc/ops/map_tensors.h"
#include "torch_xla_lite/csrc/ops/named.h"
#include "torch_xla_lite/csrc/ops/op_facts.h"
#include "torch_xla_lite/csrc/ops/op_name.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"

namespace torch_xla_lite::interpreter {
namespace {

using aten::AtenCall;
using aten::UnexpectedResults;
using ops::CallPlan;
using ops::ScalarView;

// Draws numbers only for dropout, which its kernel refuses.
constexpr std::string_view kAttention = "aten::_scaled_dot_product_flash_attention_for_cpu";

// The dtype to which torch would convert the numbers of a call, in each of its runs: this one saves
// a third of the time of a small op. Numbers of 16-bit floats keep their digits: Undefined.
c10::ScalarType DtypeOfNumbers(const c10::OperatorHandle& op,
                               std::span<const ir::Shape* const> outputs) {
  const bool has_result = outputs.size() == 1 && outputs[0] != nullptr;
  if (!has_result || !op.hasTag(at::Tag::pointwise)) return c10::ScalarType::Undefined;
  const c10::ScalarType dtype = tensor::ScalarTypeOf(outputs[0]);
  const bool is_wide = dtype == c10::ScalarType::Float || dtype == c10::ScalarType::Double;
  return is_wide ? dtype : c10::ScalarType::Undefined;
}

// Whether a 16-bit float meets another dtype.
bool MixesHalves(std::span<const at::Tensor> operands) {
  const auto is_half = [](const at::Tensor& operand) {
    return c10::isReducedFloatingType(operand.scalar_type());
  };
  const auto is_other = [&](const at::Tensor& operand) {
    return operand.scalar_type() != operands[0].scalar_type();
  };
  return std::ranges::any_of(operands, is_half) && std::ranges::any_of(operands, is_other);
}

at::Tensor AtStartOfStorage(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.resolve_conj().resolve_neg().contiguous();
  return dense.storage_offset() == 0 ? dense : dense.clone();
}

bool IsView(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.returns(), [](const c10::Argument& result) {
    return result.alias_info() != nullptr && !result.alias_info()->isWrite();
  });
}

// torch has no kernel of this op for the CPU, where its own autograd records other ops.
// (Tensor self, Tensor grad_output, Tensor weight, bool[3] mask) -> three tensors
void LinearBackward(torch::jit::Stack* stack) {
  const auto mask = stack->back().toBoolList();
  const at::Tensor self = (*stack)[0].toTensor(), grad = (*stack)[1].toTensor(),
                   weight = (*stack)[2].toTensor();
  const at::Tensor rows = grad.reshape({-1, grad.size(-1)});
  std::vector<c10::IValue> results(3, at::Tensor());
  if (mask[0]) results[0] = grad.matmul(weight.conj());
  // torch's meta function gives both or none.
  if (mask[1] || mask[2]) {
    results[1] = rows.t().mm(self.reshape({-1, self.size(-1)}).conj());
    results[2] = rows.sum(0);
  }
  *stack = std::move(results);
}

// (Tensor self, Tensor mat2, Tensor offs) -> Tensor
void GroupedMm(torch::jit::Stack* stack) {
  const at::Tensor self = (*stack)[0].toTensor(), offs = (*stack)[2].toTensor();
  stack->resize(5);  // No bias, and the same dtype.
  ops::FindOp("aten::_grouped_mm")->callBoxed(stack);
  const at::Tensor result = stack->back().toTensor();
  const int64_t dim = self.dim() == 2 ? 0 : 1, end = offs[-1].item<int64_t>();
  // torch writes nothing behind the last group.
  if (result.dim() == 2) result.narrow(dim, end, result.size(dim) - end).zero_();
}

// Of an op on a list, which returns nothing in place.
bool IsOnList(const c10::FunctionSchema& in_place) {
  return in_place.returns().empty() &&
         in_place.arguments()[0].type()->kind() == c10::ListType::Kind;
}

// The same op in place: it computes the same in the memory of its first argument.
std::optional<c10::OperatorHandle> InPlaceForm(const c10::OperatorHandle& op) {
  const c10::OperatorName& name = op.operator_name();
  const auto form = c10::Dispatcher::singleton().findSchema({name.name + "_", name.overload_name});
  if (!form || form->hasTag(at::Tag::inplace_view)) return std::nullopt;
  const auto& arguments = form->schema().arguments();
  if (form->schema().returns().size() != 1 && !IsOnList(form->schema())) return std::nullopt;
  const bool is_same = std::ranges::equal(arguments, op.schema().arguments(), {},
                                          &c10::Argument::name, &c10::Argument::name) &&
                       form->hasComputedKernelForDispatchKey(c10::DispatchKey::CPU);
  return is_same ? form : std::nullopt;
}

// Whether the call adds to what is in the places to which it writes.
bool Accumulates(const aten::AtenCall& call) {
  const auto argument = call.op().schema().argumentIndexWithName("accumulate");
  return argument && call.plan().ConstantAt(*argument).toBool();
}

bool SharesPlace(const at::Tensor& a, const at::Tensor& b) {
  return a.const_data_ptr() == b.const_data_ptr() && a.scalar_type() == b.scalar_type() &&
         a.sizes() == b.sizes() && a.strides() == b.strides();
}

using Kernel = void (*)(torch::jit::Stack*);

// Kernels of this project, for ops that torch has none of, by the fact `own_kernel`.
Kernel FindKernel(std::string_view name) {
  static constexpr auto kKernels = std::to_array<std::pair<std::string_view, Kernel>>({
      {"grouped_mm", GroupedMm},
      {"gru_cell", GruCell},
      {"gru_cell_backward", GruCellBackward},
      {"linear_backward", LinearBackward},
      {"lstm_cell", LstmCell},
      {"lstm_cell_backward", LstmCellBackward},
      {"recurrence", Recurrence},
      {"recurrence_backward", RecurrenceBackward},
  });
  return ops::Named(kKernels, name);
}

}  // namespace

// If they do not, each stride is longer than the distance to the last element that the shorter
// strides lead to.
bool MayOverlap(const at::Tensor& view) {
  if (view.is_non_overlapping_and_dense()) return false;
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride and size
  for (int64_t dim = 0; dim < view.dim(); ++dim) {
    if (view.size(dim) == 0) return false;
    if (view.size(dim) > 1) dims.emplace_back(view.stride(dim), view.size(dim));
  }
  std::ranges::sort(dims);
  int64_t reach = 0;
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

CpuCall::CpuCall(const ir::Signature& signature) : signature_(signature) {
  const std::string& name = signature.op;
  const ops::OpFacts& facts = ops::FactsOf(name);
  const auto op = ops::FindOp(name);
  if (!op) return;
  is_seeded_ = op->hasTag(at::Tag::nondeterministic_seeded);
  draws_ = is_seeded_ && name != kAttention;
  if (!facts.by_value) return;
  kernel_ = FindKernel(facts.own_kernel);
  complete_ = FindCompletion(facts.completed_by);
  draw_ = signature.outputs.empty() ? nullptr : FindDraw(facts.draw, signature.outputs[0]);
  if (draw_ == nullptr && !HasKernel(*op)) return;
  // The first word belongs to the recorder.
  const auto arguments = std::span<const uint64_t>(signature.words).subspan(1);
  call_.emplace(*op, arguments, CallPlan::Rest::kIgnored);
  scalar_dtypes_ = call_->plan().scalar_dtypes();
  const c10::ScalarType dtype = DtypeOfNumbers(*op, signature.outputs);
  const bool takes_numbers = kernel_ == nullptr && complete_ == nullptr;
  if (takes_numbers && dtype != c10::ScalarType::Undefined) call_->BorrowNumbers(dtype);
  index_ = ops::FindIndexArguments(*op);
  needs_dense_operand_ = facts.dense_operand;
  rewrites_ = facts.rewrites && !Accumulates(*call_);
  // A graph has no strides: contiguous() records nothing, so kernels that torch calls with
  // contiguous tensors only would get views.
  is_pointwise_ = op->hasTag(at::Tag::pointwise);
  takes_any_strides_ =
      kernel_ != nullptr || is_pointwise_ || IsView(op->schema()) || facts.any_strides;
  takes_channels_last_ = facts.channels_last;
  if (kernel_ == nullptr && draw_ == nullptr) in_place_ = InPlaceForm(*op);
  is_lowered_ = facts.is_lowered;
  rounds_numbers_ = facts.rounds == "numbers";
  rounds_operands_ = !facts.rounds.empty();
  // The strides among its arguments are those of torch's view.
  is_reshape_ = name == "aten::_reshape_alias";
}

const CpuCall& CpuCall::Of(const ir::Signature& signature) {
  if (!signature.derived) signature.derived = std::make_unique<const CpuCall>(signature);
  return static_cast<const CpuCall&>(*signature.derived);
}

std::vector<Part> CpuCall::KeptParts(std::span<const at::Tensor> operands) const {
  const bool is_torchs =
      (kernel_ == nullptr || kernel_ == LinearBackward) && complete_ == nullptr && draw_ == nullptr;
  const bool is_plain = is_torchs && !signature_.written && !is_reshape_ && !index_ &&
                        !is_seeded_ && !needs_dense_operand_ && width_ == Width::kOwn &&
                        is_possible();
  if (!is_plain) return {};
  const auto is_contiguous = [&](const at::Tensor& operand) {
    return operand.is_contiguous(FormatOf(operand));
  };
  if (!takes_any_strides_ && !std::ranges::all_of(operands, is_contiguous)) return {};
  return KeptCall::PartsOf(*call_, operands);
}

bool CpuCall::is_view() const {
  return call_ && !signature_.written && IsView(call_->op().schema());
}

bool CpuCall::may_fail() const {
  if (signature_.is_zeros) return false;
  if (!is_possible() || draws_) return true;
  if (signature_.written || is_view()) return false;
  return !(is_pointwise_ || signature_.op.starts_with("aten::_foreach_")) ||
         !std::ranges::all_of(signature_.outputs, [](const ir::Shape* output) {
           return output != nullptr && c10::isFloatingType(tensor::ScalarTypeOf(output));
         });
}

bool CpuCall::is_possible() const {
  return call_.has_value() && !has_given_up_ && width_ != Width::kNone &&
         ops::DefaultDtypeOf(signature_.words) == c10::get_default_dtype_as_scalartype();
}

c10::MemoryFormat CpuCall::FormatOf(const at::Tensor& operand) const {
  return takes_channels_last_ ? operand.suggest_memory_format() : c10::MemoryFormat::Contiguous;
}

bool CpuCall::HasKernel(const c10::OperatorHandle& op) const {
  return !op.schema().is_mutable() && !draws_ &&
         (kernel_ != nullptr || op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU));
}

std::vector<at::Tensor> CpuCall::Run(std::span<at::Tensor> operands,
                                     std::span<const uint64_t> scalars, bool may_overwrite) const {
  has_run_ = true;
  const aten::KernelKeysGuard keys;
  if (is_reshape_) return {operands.back().reshape(signature_.outputs[0]->dims())};
  if (signature_.written) return {Written(operands, scalars, may_overwrite)};
  if (needs_dense_operand_) operands[0] = AtStartOfStorage(operands[0]);
  if (!takes_any_strides_) {
    for (at::Tensor& operand : operands) operand = operand.contiguous(FormatOf(operand));
  }
  std::vector<at::Tensor> results = Results(operands, scalars, may_overwrite);
  if (results.size() != signature_.outputs.size()) throw UnexpectedResults(signature_.op);
  for (size_t i = 0; i < results.size(); ++i) results[i] = Checked(std::move(results[i]), i);
  return results;
}

// operands: the base, and the value to write.
at::Tensor CpuCall::Written(std::span<at::Tensor> operands, std::span<const uint64_t> scalars,
                            bool may_overwrite) const {
  const auto view_of = [&](const at::Tensor& base) {
    return Results({&base, 1}, scalars, /*may_overwrite=*/false).at(*signature_.written);
  };
  at::Tensor base = needs_dense_operand_ ? AtStartOfStorage(operands[0]) : operands[0];
  at::Tensor view = view_of(base);
  // A view of the view was written to in place, or there is nothing to write.
  if (view.numel() == 0 || SharesPlace(view, operands[1])) return base;
  if (!may_overwrite && base.is_same(operands[0])) {
    base = base.clone(at::MemoryFormat::Contiguous);
    view = view_of(base);
  }
  // An element that is written twice would get the last value, which may be the old one.
  if (MayOverlap(view)) throw UnexpectedResults(signature_.op);
  view.copy_(operands[1]);
  return base;
}

size_t CpuCall::num_overwritten() const {
  if (!in_place_) return signature_.written ? 1 : 0;
  return IsOnList(in_place_->schema()) ? signature_.outputs.size() : 1;
}

// Whether the results may be where the first operands are, if those are the call's first argument.
bool CpuCall::FitResults(const c10::IValue& argument, std::span<const at::Tensor> operands) const {
  if (!argument.isTensor() && !argument.isTensorList()) return false;
  const c10::List<at::Tensor> list =
      argument.isTensor() ? c10::List<at::Tensor>({argument.toTensor()}) : argument.toTensorList();
  const std::vector<const ir::Shape*>& outputs = signature_.outputs;
  if (list.size() != outputs.size() || operands.size() < outputs.size()) return false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const at::Tensor& operand = operands[i];
    const bool fits = list.get(i).is_same(operand) && outputs[i] != nullptr &&
                      operand.is_contiguous() && !operand.is_conj() && !operand.is_neg() &&
                      operand.sizes() == at::IntArrayRef(outputs[i]->dims()) &&
                      operand.scalar_type() == operands[0].scalar_type() &&
                      operand.scalar_type() == tensor::ScalarTypeOf(outputs[i]);
    if (!fits) return false;
  }
  return true;
}

// Where the kernel refuses the dtypes of a call that has a lowering, in wider ones.
std::vector<at::Tensor> CpuCall::Results(std::span<const at::Tensor> operands,
                                         std::span<const uint64_t> scalars,
                                         bool may_overwrite) const {
  try {
    return ResultsOf(width_, operands, scalars, may_overwrite);
  } catch (const c10::Error& error) {
    if (!is_lowered_ || width_ != Width::kOwn || !MayBeRefusal(error)) throw;
    for (const Width width : {Width::kWide, Width::kDouble}) {
      try {
        std::vector<at::Tensor> results = ResultsOf(width, operands, scalars, may_overwrite);
        width_ = width;
        return results;
      } catch (const c10::Error&) {
        // What it says of the call itself, the first error says, too.
      }
    }
    if (IsRefusal(error)) width_ = Width::kNone;
    throw;
  }
}

std::vector<at::Tensor> CpuCall::ResultsOf(Width width, std::span<const at::Tensor> operands,
                                           std::span<const uint64_t> scalars,
                                           bool may_overwrite) const {
  const std::vector<c10::ScalarType>& dtypes = call_->plan().scalar_dtypes();
  std::vector<Number> numbers(dtypes.size());
  c10::SmallVector<ScalarView, 2> views;
  for (size_t i = 0; i < dtypes.size(); ++i) {
    const size_t size = c10::isComplexType(scalar_dtypes_[i]) ? 2 : 1;
    if (scalars.size() < size) throw UnexpectedResults(signature_.op);
    std::ranges::copy(scalars.first(size), numbers[i].words);
    views.push_back(View(numbers[i], scalar_dtypes_[i], dtypes[i]));
    scalars = scalars.subspan(size);
  }
  // The rest are seed and offset of a generator.
  if (scalars.size() != (is_seeded_ ? 2 : 0)) throw UnexpectedResults(signature_.op);
  torch::jit::Stack stack = call_->Arguments(operands, views);
  if ((rounds_numbers_ && !numbers.empty()) || (rounds_operands_ && MixesHalves(operands))) {
    for (c10::IValue& argument : stack) {
      argument = ops::MapArgument(argument, at::kCPU, ToOpmath);
    }
  }
  if (draw_ != nullptr) {
    return draw_(stack, kernels::Threefry::Of(scalars[0], scalars[1]), *signature_.outputs[0]);
  }
  // The rest of the graph needs no compilation.
  if (signature_.op == kAttention && stack[3].toDouble() != 0)
    throw UnexpectedResults(signature_.op);
  if (index_ && index_->end >= 0) SetEndOfSlice(&stack);
  // If it raises, the lowering runs, and says what is wrong.
  call_->Check(stack);
  if (width != Width::kOwn) Widen(call_->op().schema(), width, &stack);
  const torch::jit::Stack arguments = complete_ == nullptr ? torch::jit::Stack() : stack;
  if (kernel_ != nullptr) {
    kernel_(&stack);
  } else if (may_overwrite && in_place_ && FitResults(stack[0], operands)) {
    const c10::IValue first = stack[0];
    in_place_->callBoxed(&stack);
    stack = {first};
  } else {
    call_->Call(&stack);
  }
  if (complete_ != nullptr) complete_(arguments, &stack);
  std::vector<at::Tensor> results = AtenCall::Results(stack);
  if (width != Width::kOwn) Narrow(width, results);
  return results;
}

// Converts results back that a wider dtype has.
void CpuCall::Narrow(Width width, std::span<at::Tensor> results) const {
  if (results.size() != signature_.outputs.size()) return;
  for (size_t i = 0; i < results.size(); ++i) {
    const ir::Shape* const shape = signature_.outputs[i];
    if (shape == nullptr || !results[i].defined()) continue;
    const c10::ScalarType dtype = tensor::ScalarTypeOf(shape);
    if (results[i].scalar_type() == WiderDtype(dtype, width)) results[i] = results[i].to(dtype);
  }
}

// The end of a slice with a runtime start is not recorded, but its length is: after the arguments.
void CpuCall::SetEndOfSlice(torch::jit::Stack* stack) const {
  const c10::IValue& start = (*stack)[index_->start];
  c10::IValue& end = (*stack)[index_->end];
  if (!end.isNone() || !start.isInt()) return;
  end = start.toInt() + static_cast<int64_t>(signature_.words.back());
}

at::Tensor CpuCall::Checked(at::Tensor result, size_t output) const {
  const ir::Shape* shape = signature_.outputs[output];
  if (shape == nullptr) return {};
  const c10::ScalarType dtype = tensor::ScalarTypeOf(shape);
  call_->CheckResult(result, output, shape->dims(), dtype);
  return result.scalar_type() == dtype ? result : result.to(dtype);
}

}  // namespace torch_xla_lite::interpreter
