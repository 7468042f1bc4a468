#include "torch_xla_lite/csrc/infer/infer.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/infer/meta_function.h"
#include "torch_xla_lite/csrc/infer/quantized.h"
#include "torch_xla_lite/csrc/infer/refused_calls.h"
#include "torch_xla_lite/csrc/infer/shape_rules.h"
#include "torch_xla_lite/csrc/ops/map_tensors.h"
#include "torch_xla_lite/csrc/ops/op_name.h"
#include "torch_xla_lite/csrc/runtime/executor.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"

namespace torch_xla_lite::infer {
namespace {

using tensor::Layout;
using tensor::OpSignature;

at::Tensor MetaOf(const at::Tensor& tensor, bool with_strides) {
  // A number keeps its value: some meta kernels read it, and numbers take part in type promotion.
  if (tensor.device().is_cpu()) return tensor;
  const at::Tensor meta(
      with_strides
          ? at::detail::empty_strided_meta(tensor.sizes(), tensor.strides(), tensor.scalar_type())
          : at::detail::empty_meta(tensor.sizes(), tensor.scalar_type()));
  return meta;
}

torch::jit::Stack MetaOf(c10::ArrayRef<c10::IValue> arguments, bool with_strides) {
  torch::jit::Stack stack;
  for (const c10::IValue& argument : arguments) {
    stack.push_back(
        ops::MapArgument(argument, c10::Device(c10::kMeta),
                         [&](const at::Tensor& tensor) { return MetaOf(tensor, with_strides); }));
  }
  return stack;
}

// Their meta functions refuse numbers on the CPU, and do not read them. The CPU's kernels decide
// about complex ones.
void PutNumberOnMeta(const ops::OpInfo& info, torch::jit::Stack* stack) {
  if (info.name != "aten::masked_fill.Tensor" && info.name != "aten::index_fill.int_Tensor") return;
  const at::Tensor value = stack->back().toTensor();
  if (!value.device().is_cpu() || c10::isComplexType(value.scalar_type())) return;
  stack->back() = at::Tensor(at::detail::empty_meta({}, value.scalar_type()));
}

// Calls the op on meta tensors and leaves its results on the stack. Returns the written arguments.
std::vector<c10::IValue> RunOnMeta(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
                                   torch::jit::Stack* stack) {
  if (info.kind == ops::OpInfo::Kind::kInplaceView && info.name == "aten::t") {
    // Its meta function, in Python, has an assertion instead.
    const int64_t dims = arguments[0].toTensor().dim();
    TORCH_CHECK(dims <= 2, "t_() expects a tensor with <= 2 dimensions, but self is ", dims, "D");
  }
  *stack = MetaOf(arguments, info.IsView());
  PutNumberOnMeta(info, stack);
  std::vector<c10::IValue> mutated;
  for (const int i : info.mutated) mutated.push_back((*stack)[i]);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  if (!ApplyShapeRule(info, stack)) info.op.callBoxed(stack);
  return mutated;
}

// Whether tensors or numbers of `value` cannot be cast to `dtype`, such as floats to integers.
bool IsWider(const c10::IValue& value, c10::ScalarType dtype) {
  if (value.isList()) {
    return std::ranges::any_of(value.toListRef(),
                               [&](const c10::IValue& item) { return IsWider(item, dtype); });
  }
  if (value.isScalar()) return !c10::canCast(value.toScalar().type(), dtype);
  return value.isTensor() && value.toTensor().defined() &&
         !c10::canCast(value.toTensor().scalar_type(), dtype);
}

// The results of the functional form of an op that writes to arguments. Empty if it has none.
torch::jit::Stack FunctionalResults(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  const auto functional = ops::FindOp(info.name);
  if (!functional || functional->schema().is_mutable()) return {};
  torch::jit::Stack stack;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (info.arguments[i].role != ops::OpInfo::Role::kOut) stack.push_back(arguments[i]);
  }
  stack = MetaOf(stack, /*with_strides=*/false);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  if (!CallMetaFunction(*functional, &stack)) functional->callBoxed(stack);
  return stack;
}

// Whether an op in place has results that torch does not write to its first argument, of other
// dtypes. The meta functions of some ops write them.
bool IsTooWide(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  if (info.has_out || info.mutated != std::vector<int>{0}) return false;
  std::vector<c10::ScalarType> written;
  ops::ForEachTensor(arguments[0],
                     [&](const at::Tensor& self) { written.push_back(self.scalar_type()); });
  // Of integers, many ops give floats.
  const auto has_room = [&](c10::ScalarType dtype) {
    const bool is_wide = c10::isFloatingType(dtype) || c10::isComplexType(dtype);
    return is_wide && std::ranges::none_of(
                          arguments, [&](const auto& value) { return IsWider(value, dtype); });
  };
  if (std::ranges::all_of(written, has_room)) return false;
  const torch::jit::Stack results = FunctionalResults(info, arguments);
  if (results.empty()) return false;
  auto dtype = written.begin();
  bool is_too_wide = false;
  ops::ForEachTensor(results[0],
                     [&](const at::Tensor& result) { is_too_wide |= IsWider(result, *dtype++); });
  return is_too_wide;
}

bool IsPointwise(const ops::OpInfo& info) {
  return info.op.hasTag(at::Tag::pointwise) || info.name.starts_with("aten::floor_divide");
}

// Whether an operand can give the result another dtype than that of `self`. A number cannot if it
// has a place in that dtype (c10::result_type).
bool MayPromote(const c10::IValue& operand, const at::Tensor& self) {
  if (!operand.isTensor() || !operand.toTensor().defined()) return false;
  const at::Tensor& tensor = operand.toTensor();
  const bool is_number = tensor.unsafeGetTensorImpl()->is_wrapped_number();
  return is_number ? !c10::canCast(tensor.scalar_type(), self.scalar_type())
                   : tensor.scalar_type() != self.scalar_type();
}

// Whether an op computes in another dtype than that of an argument to which it writes its results.
// For ops that are not pointwise, only out= arguments show this: others compute in the dtype of
// `self`.
bool WritesOtherDtype(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  if (!info.has_out) {
    if (!IsPointwise(info) || info.mutated != std::vector<int>{0} || !arguments[0].isTensor())
      return false;
    const at::Tensor& self = arguments[0].toTensor();
    if (std::ranges::none_of(arguments,
                             [&](const auto& argument) { return MayPromote(argument, self); }))
      return false;
  }
  const torch::jit::Stack results = FunctionalResults(info, arguments);
  if (results.size() != info.mutated.size()) return false;
  for (size_t i = 0; i < results.size(); ++i) {
    const c10::IValue& written = arguments[info.mutated[i]];
    if (!results[i].isTensor() || !written.isTensor()) continue;
    if (results[i].toTensor().scalar_type() != written.toTensor().scalar_type()) return true;
  }
  return false;
}

// Whether an op in place does not fit what it writes to. torch's meta functions in Python resize
// that.
bool Resizes(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
             c10::ArrayRef<c10::IValue> mutated) {
  if (info.has_out || info.IsView()) return false;
  for (size_t i = 0; i < mutated.size(); ++i) {
    const c10::IValue& written = arguments[info.mutated[i]];
    if (!written.isTensor() || !mutated[i].isTensor()) continue;
    if (mutated[i].toTensor().sizes() != written.toTensor().sizes()) return true;
  }
  return false;
}

// Whether the result is all zeros, as uninitialised memory is here (lowering/factories.py).
bool GivesZeros(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  if (info.facts->zeros) return true;
  if (info.name != "aten::full" && info.name != "aten::full_like") return false;
  const c10::Scalar value = arguments[1].toScalar();
  // A flag is no part of the signature.
  return !value.isBoolean() && value.equal(0) &&
         !(value.isFloatingPoint() && std::signbit(value.toDouble()));
}

// torch's meta functions give quantized tensors other dtypes.
void CheckDtypes(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    c10::TypePtr type = info.op.schema().arguments()[i].real_type();
    if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
    if (type->kind() != c10::TypeKind::ScalarTypeType || !arguments[i].isInt()) continue;
    CheckNotQuantized(arguments[i].toScalarType(), info.name);
  }
}

// Keeps the shapes that the words of the call refer to.
void KeepShapes(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
                const ops::Call& call, OpSignature* signature) {
  for (const tensor::XTensorImpl* operand : call.operands) signature->Keep(operand->shape());
  for (const int i : info.mutated) {
    if (info.arguments[i].role != ops::OpInfo::Role::kOut) continue;
    ops::ForEachTensor(arguments[i], [&](const at::Tensor& out) {
      const auto* impl = out.defined() ? tensor::XTensorImpl::From(out) : nullptr;
      if (impl != nullptr) signature->Keep(impl->shape());
    });
  }
}

class Outputs {
 public:
  Outputs(const ops::OpInfo& info, const ops::Call& call, OpSignature* signature)
      : info_(info), call_(call), signature_(*signature) {}

  void Add(const c10::IValue& result) {
    if (!result.isList()) {
      signature_.result_sizes.push_back(-1);
      AddTensor(result);
      return;
    }
    const auto items = result.toListRef();
    signature_.result_sizes.push_back(static_cast<int>(items.size()));
    for (const c10::IValue& item : items) AddTensor(item);
  }

 private:
  void AddTensor(const c10::IValue& result) {
    Layout layout;
    if (result.isNone() || !result.toTensor().defined()) {
      signature_.AddOutput({});
    } else {
      const at::Tensor& tensor = result.toTensor();
      signature_.AddOutput(tensor::ShapeOf(tensor.scalar_type(), tensor.sizes(), signature_.op));
      if (info_.IsView()) {
        // A view without elements is contiguous however it lies; views of it begin by its strides.
        const bool is_row_major = tensor.is_contiguous() && tensor.numel() > 0;
        if (!is_row_major) layout.strides = tensor.strides().vec();
        layout.offset = tensor.storage_offset() - call_.runtime_offset;
      }
    }
    signature_.layouts.push_back(std::move(layout));
  }

  const ops::OpInfo& info_;
  const ops::Call& call_;
  OpSignature& signature_;
};

// Whether a batch norm is in evaluation, where torch's CPU kernels save no statistics. Its meta
// functions say so only for tensors on the CPU.
bool SavesNoStatistics(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  if (info.name == "aten::_native_batch_norm_legit_no_training") return true;
  if (info.name != "aten::native_batch_norm" && !info.name.starts_with("aten::_native_batch_norm"))
    return false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (info.op.schema().arguments()[i].name() == "training") return !arguments[i].toBool();
  }
  return false;
}

}  // namespace

ir::Ref<OpSignature> Infer(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
                           const ops::Call& call) {
  CheckDtypes(info, arguments);
  auto signature = ir::MakeRef<OpSignature>(
      info.name, std::vector<uint64_t>(call.words.begin(), call.words.end()),
      std::vector<const ir::Shape*>());
  KeepShapes(info, arguments, call, signature.get());
  if (info.op.schema().returns().empty() && info.mutated.empty()) {
    // Ops without results check their arguments (whether a matrix is singular, for example).
    signature->runs_on_cpu = true;
    return signature;
  }
  torch::jit::Stack stack;
  std::vector<c10::IValue> mutated;
  try {
    mutated = RunOnMeta(info, arguments, &stack);
    signature->runs_on_cpu = IsTooWide(info, arguments) || Resizes(info, arguments, mutated);
    // The dtype of out= decides how some ops compute, others convert to it, and others refuse it.
    (info.has_out ? signature->runs_on_cpu : signature->converts) |=
        WritesOtherDtype(info, arguments);
  } catch (const std::exception& error) {
    // Transient; says nothing about the op.
    if (runtime::Runtime::Get().executor().IsTransient(error)) throw;
    // A view never depends on data; on the CPU, where data is dense, a wrong one might succeed.
    if (info.IsView()) throw;
    // The shape depends on data, torch has no meta kernel, or the call is invalid. In each case the
    // CPU kernel does the right thing.
    signature->runs_on_cpu = true;
    return signature;
  }
  Outputs outputs(info, call, signature.get());
  for (size_t i = 0; i < stack.size(); ++i) {
    if (info.results[i] < 0) outputs.Add(stack[i]);
  }
  for (const c10::IValue& argument : mutated) outputs.Add(argument);
  if (SavesNoStatistics(info, arguments)) {
    const auto dtype = tensor::ScalarTypeOf(signature->outputs[1]);
    const auto empty = tensor::ShapeOf(dtype, {0}, signature->op);
    signature->Keep(empty.get());
    signature->outputs[1] = signature->outputs[2] = empty.get();
  }
  signature->is_zeros = GivesZeros(info, arguments);
  const ir::Shape* operand = call.operands.empty() ? nullptr : call.operands[0]->shape();
  if (IsRefused(info, arguments, operand, *signature)) signature->runs_on_cpu = true;
  return signature;
}

void CheckCall(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  torch::jit::Stack stack;
  try {
    RunOnMeta(info, arguments, &stack);
  } catch (const c10::NotImplementedError&) {
    // There is no meta kernel.
  } catch (const std::exception& error) {
    // A kernel that reads a value is no error of the call.
    const bool reads = std::string_view(error.what()).find("meta tensor") != std::string_view::npos;
    if (!reads && !runtime::Runtime::Get().executor().IsNotImplemented(error)) throw;
  }
}

}  // namespace torch_xla_lite::infer
