// torch.autocast('jax'): casts the inputs of the ops that CUDA's autocast casts.
//
//   with torch.autocast('jax', dtype=torch.bfloat16):
//       y = model(x)            # products in bfloat16, losses and norms in float32
//
// One boxed kernel per policy serves all ops: it casts the tensors on the stack and calls the op
// again with autocast off. torch itself has a typed wrapper for each op, which needs all of ATen's
// headers and half a minute of compiler time.

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <autocast_ops.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

// Declared in ATen/autocast_mode.h, which includes ATen/ATen.h (5 s of compiler time for these two
// functions).
namespace at::autocast {
TORCH_API ScalarType get_autocast_dtype(DeviceType device_type);
TORCH_API Tensor cached_cast(ScalarType to_type, const Tensor& arg, DeviceType device_type);
}  // namespace at::autocast

namespace torch_xla_lite::device {
namespace {

using c10::DispatchKey;
using c10::OperatorHandle;
using c10::ScalarType;
using torch::jit::Stack;

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

// float64 is not cast: users choose it for its precision.
bool IsEligible(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kType && tensor.is_floating_point() &&
         tensor.scalar_type() != ScalarType::Double;
}

// Replaces each tensor among the arguments of `op`, including those in lists, by what `visit`
// returns for it.
template <typename Visit>
void ReplaceTensors(const OperatorHandle& op, Stack* stack, Visit visit) {
  const size_t count = op.schema().arguments().size();
  for (size_t i = 0; i < count; ++i) {
    c10::IValue& value = torch::jit::peek(*stack, i, count);
    if (value.isTensor()) {
      value = visit(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> tensors;
      for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(visit(tensor));
      value = std::move(tensors);
    }
  }
}

void CastAll(const OperatorHandle& op, Stack* stack, ScalarType dtype) {
  ReplaceTensors(op, stack, [dtype](const at::Tensor& tensor) {
    return at::autocast::cached_cast(dtype, tensor, kType);
  });
}

void CallWithoutAutocast(const OperatorHandle& op, Stack* stack) {
  c10::impl::ExcludeDispatchKeyGuard no_autocast(DispatchKey::AutocastPrivateUse1);
  op.callBoxed(stack);
}

struct LowerPrecision final : c10::OperatorKernel {
  void operator()(const OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    // The casts run without autocast, too; otherwise each would call this kernel again.
    c10::impl::ExcludeDispatchKeyGuard no_autocast(DispatchKey::AutocastPrivateUse1);
    CastAll(op, stack, at::autocast::get_autocast_dtype(kType));
    op.callBoxed(stack);
  }
};

struct Float32 final : c10::OperatorKernel {
  void operator()(const OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    c10::impl::ExcludeDispatchKeyGuard no_autocast(DispatchKey::AutocastPrivateUse1);
    CastAll(op, stack, ScalarType::Float);
    op.callBoxed(stack);
  }
};

struct Float32Dtype final : c10::OperatorKernel {
  void operator()(const OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    const auto& schema = op.schema();
    size_t count = schema.arguments().size();
    const c10::IValue& first = torch::jit::peek(*stack, 0, count);
    if (first.isTensor() && IsEligible(first.toTensor())) {
      c10::IValue& dtype = torch::jit::peek(*stack, *schema.argumentIndexWithName("dtype"), count);
      if (dtype.isNone()) dtype = ScalarType::Float;
    }
    CallWithoutAutocast(op, stack);
  }
};

// The overload of an op that takes the dtype of the result after the same arguments.
OperatorHandle FindWithDtype(const OperatorHandle& op) {
  const auto& wanted = op.schema().arguments();
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name != op.operator_name().name) continue;
    const OperatorHandle candidate = c10::Dispatcher::singleton().findSchemaOrThrow(
        name.name.c_str(), name.overload_name.c_str());
    const auto& arguments = candidate.schema().arguments();
    if (arguments.size() == wanted.size() + 1 && arguments.back().name() == "dtype" &&
        std::ranges::equal(arguments.begin(), arguments.end() - 1, wanted.begin(), wanted.end(), {},
                           &c10::Argument::name, &c10::Argument::name))
      return candidate;
  }
  TORCH_CHECK(false, op.operator_name(), " has no overload with a dtype.");
}

class Float32Overload final : public c10::OperatorKernel {
 public:
  void operator()(const OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    std::call_once(found_, [&] { with_dtype_ = FindWithDtype(op); });
    const at::Tensor& first =
        torch::jit::peek(*stack, 0, op.schema().arguments().size()).toTensor();
    ScalarType dtype = IsEligible(first) ? ScalarType::Float : first.scalar_type();
    stack->emplace_back(dtype);
    CallWithoutAutocast(*with_dtype_, stack);
  }

 private:
  std::once_flag found_;
  std::optional<OperatorHandle> with_dtype_;
};

struct Promote final : c10::OperatorKernel {
  void operator()(const OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    c10::impl::ExcludeDispatchKeyGuard no_autocast(DispatchKey::AutocastPrivateUse1);
    const ScalarType low = at::autocast::get_autocast_dtype(kType);
    ScalarType widest = low;
    ReplaceTensors(op, stack, [&](const at::Tensor& tensor) {
      if (IsEligible(tensor) && tensor.scalar_type() != low) widest = ScalarType::Float;
      return tensor;
    });
    CastAll(op, stack, widest);
    op.callBoxed(stack);
  }
};

struct Forbidden final : c10::OperatorKernel {
  void operator()(const OperatorHandle& op, c10::DispatchKeySet, Stack*) {
    TORCH_CHECK(
        false, op.operator_name(),
        " is unsafe under autocast: its inputs are probabilities, which float16 rounds to 0 or 1.\n"
        "Use binary_cross_entropy_with_logits (BCEWithLogitsLoss), or leave autocast for this op.");
  }
};

// Ops that are in none of the lists pass through autocast unchanged.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, library) {
  using torch::CppFunction;
  auto add = [&library](std::string_view name, auto kernel) {
    library.impl(std::string(name).c_str(), CppFunction::makeFromBoxedFunctor(std::move(kernel)));
  };
  for (std::string_view op : kLowerPrecisionFp) add(op, std::make_unique<LowerPrecision>());
  for (std::string_view op : kFp32) add(op, std::make_unique<Float32>());
  for (std::string_view op : kFp32SetOptDtype) add(op, std::make_unique<Float32Dtype>());
  for (std::string_view op : kDifferentRedispatchSignature)
    add(op, std::make_unique<Float32Overload>());
  for (std::string_view op : kPromote) add(op, std::make_unique<Promote>());
  add("aten::binary_cross_entropy", std::make_unique<Forbidden>());
}

}  // namespace
}  // namespace torch_xla_lite::device
