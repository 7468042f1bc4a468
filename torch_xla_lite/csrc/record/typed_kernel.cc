#include "torch_xla_lite/csrc/record/typed_kernel.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/core/GradMode.h>

#include <array>
#include <memory>
#include <optional>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/record/record.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"

namespace torch_xla_lite::record {
namespace {

// Making a list takes two allocations, so each thread uses one again that nothing refers to.
c10::IValue Borrow(at::IntArrayRef values) {
  thread_local auto list = c10::impl::GenericList(c10::IntType::get());
  if (list.use_count() > 1) return values;
  list.clear();
  list.reserve(values.size());
  for (const int64_t value : values) list.push_back(value);
  return list;
}
c10::IValue Borrow(c10::SymIntArrayRef values) {
  const auto ints = c10::asIntArrayRefSlowOpt(values);
  return ints ? Borrow(*ints) : c10::IValue(values);
}
c10::IValue Borrow(at::OptionalIntArrayRef values) {
  return values ? Borrow(*values) : c10::IValue();
}
c10::IValue Borrow(const at::Tensor& tensor) {
  return at::Tensor(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim(
      tensor.unsafeGetTensorImpl()));
}
template <typename T>
c10::IValue Borrow(const T& value) {
  return value;
}

// The arguments of a call, which own no tensors.
template <size_t size>
struct Borrowed {
  ~Borrowed() {
    for (c10::IValue& value : values) {
      if (value.isTensor()) std::move(value).toTensor().unsafeReleaseTensorImpl();
    }
  }
  std::array<c10::IValue, size> values;
};

// Whether autograd has to know of an operation on this argument.
bool NeedsGradient(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.unsafeGetTensorImpl()->autograd_meta() == nullptr) return false;
  return (tensor.requires_grad() && c10::GradMode::is_enabled()) ||
         tensor._fw_grad(/*level=*/0).defined();
}
template <typename T>
bool NeedsGradient(const T&) {
  return false;
}

// The result of an op that has one; undefined if an in-place op was recorded.
at::Tensor Record(RecordKernel& kernel, const c10::OperatorHandle& op,
                  c10::ArrayRef<c10::IValue> arguments) {
  RecordKernel::NewResults results;
  bool is_at_limit = false;
  if (kernel.Record(op, arguments, &results, &is_at_limit) == Verdict::kRecord) {
    if (is_at_limit) runtime::Runtime::Get().StartPending();
    return results.empty() ? at::Tensor() : std::move(results[0]).toTensor();
  }
  // Copies own their tensors.
  torch::jit::Stack stack(arguments.begin(), arguments.end());
  kernel(op, {}, &stack);
  return std::move(stack[0]).toTensor();
}

// One class for both dispatch keys, because most of its compile time is torch's, for each class.
template <typename Result, typename... Args>
class TypedKernel {
 public:
  TypedKernel(const c10::OperatorHandle& op, bool is_autograd)
      : op_(op.typed<Result(Args...)>()),
        recorder_(is_autograd ? nullptr : std::make_shared<RecordKernel>()) {}

  Result operator()(c10::DispatchKeySet keys, Args... args) const {
    if (recorder_ == nullptr) {
      const c10::DispatchKeySet below = keys & c10::after_autograd_keyset;
      if ((NeedsGradient(args) || ...)) {
        // One kernel of torch serves all devices, and this key still has it.
        return op_.redispatch(below.add(c10::DispatchKey::AutogradOther), args...);
      }
      // For what the kernels below call. `below` still has ADInplaceOrView, whose kernels count
      // writes and note views.
      const at::AutoDispatchBelowADInplaceOrView guard;
      return op_.redispatch(below, args...);
    }
    Borrowed<sizeof...(Args)> arguments;
    size_t i = 0;
    ((arguments.values[i++] = Borrow(args)), ...);
    at::Tensor result = Record(*recorder_, op_, arguments.values);
    if constexpr (std::is_reference_v<Result>) {
      return First(args...);
    } else {
      return result;
    }
  }

 private:
  template <typename... Rest>
  static at::Tensor& First(at::Tensor& first, const Rest&...) {
    return first;
  }

  c10::TypedOperatorHandle<Result(Args...)> op_;
  std::shared_ptr<RecordKernel> recorder_;
};

using Make = torch::CppFunction (*)(const c10::OperatorHandle& op, bool is_autograd);

template <typename Result, typename... Args>
torch::CppFunction MakeKernel(const c10::OperatorHandle& op, bool is_autograd) {
  return torch::CppFunction(TypedKernel<Result, Args...>(op, is_autograd));
}
template <typename... Args>
constexpr Make New = MakeKernel<at::Tensor, Args...>;
template <typename... Args>
constexpr Make Inplace = MakeKernel<at::Tensor&, at::Tensor&, Args...>;

const std::unordered_map<std::string, Make>& Makers() {
  using T = const at::Tensor&;
  using Number = const at::Scalar&;
  struct Row {
    Make make;
    std::vector<const char*> ops;
  };
  static const auto* makers = [] {
    const std::vector<Row> rows{
        {New<T>,
         {"abs", "cos", "exp", "log", "neg", "reciprocal", "relu", "rsqrt", "sigmoid", "silu",
          "sin", "sqrt", "t", "tanh"}},
        {New<T, Number>,
         {"eq.Scalar", "ge.Scalar", "gt.Scalar", "le.Scalar", "lt.Scalar", "ne.Scalar",
          "pow.Tensor_Scalar"}},
        {New<T, T>,
         {"bmm", "div.Tensor", "eq.Tensor", "maximum", "minimum", "mm", "mul.Tensor",
          "sigmoid_backward", "tanh_backward"}},
        {New<T, T, Number>, {"add.Tensor", "sub.Tensor", "threshold_backward"}},
        {New<T, c10::SymIntArrayRef>, {"_unsafe_view", "view"}},
        {New<T, c10::SymIntArrayRef, bool>, {"expand"}},
        {New<T, int64_t, int64_t>, {"transpose.int"}},
        {New<T, at::OptionalIntArrayRef, bool, std::optional<at::ScalarType>>,
         {"mean.dim", "sum.dim_IntList"}},
        {Inplace<T>, {"div_.Tensor", "mul_.Tensor"}},
        {Inplace<T, Number>, {"add_.Tensor", "sub_.Tensor"}},
    };
    auto* all = new std::unordered_map<std::string, Make>;
    for (const Row& row : rows) {
      for (const char* op : row.ops) all->emplace(std::string("aten::") + op, row.make);
    }
    return all;
  }();
  return *makers;
}

}  // namespace

bool RegisterTypedKernels(const c10::OperatorHandle& op, const std::string& name,
                          torch::Library* backend, torch::Library* autograd) {
  const auto found = Makers().find(name);
  if (found == Makers().end()) return false;
  try {
    backend->impl(name.c_str(), found->second(op, /*is_autograd=*/false));
    autograd->impl(name.c_str(), found->second(op, /*is_autograd=*/true));
    return true;
  } catch (const c10::Error&) {
    // The first registration compares the C++ types, so nothing was registered.
    return false;
  }
}

}  // namespace torch_xla_lite::record
