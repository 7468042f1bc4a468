// A kept kernel (kept_kernel.h) of a structured kernel of torch: a class with two functions. `meta`
// checks the arguments and plans the loop, `impl` runs it.
//
//   std::unique_ptr<KeptKernel> kernel =
//       std::make_unique<StructuredKernel<at::native::structured_exp_out>>(arguments, out);

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_STRUCTURED_KERNEL_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_STRUCTURED_KERNEL_H_

#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <c10/core/Scalar.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/interpreter/kept_kernel.h"

namespace torch_xla_lite::interpreter {

// How an argument of a C++ type is kept, read from a stack and passed.
template <typename T>
struct Argument {
  T value;
  explicit Argument(const c10::IValue& from) : value(from.to<T>()) {}
  const T& Pass() const { return value; }
};

template <>
struct Argument<at::ScalarType> {
  at::ScalarType value;
  explicit Argument(const c10::IValue& from) : value(from.toScalarType()) {}
  at::ScalarType Pass() const { return value; }
};

template <>
struct Argument<c10::string_view> {
  std::string value;
  explicit Argument(const c10::IValue& from) : value(from.toStringRef()) {}
  c10::string_view Pass() const { return value; }
};

template <>
struct Argument<at::IntArrayRef> {
  std::vector<int64_t> value;
  explicit Argument(const c10::IValue& from) : value(from.toIntVector()) {}
  at::IntArrayRef Pass() const { return value; }
};

template <>
struct Argument<at::OptionalIntArrayRef> {
  std::optional<std::vector<int64_t>> value;
  explicit Argument(const c10::IValue& from) {
    if (!from.isNone()) value = from.toIntVector();
  }
  at::OptionalIntArrayRef Pass() const {
    return value ? at::OptionalIntArrayRef(*value) : at::OptionalIntArrayRef();
  }
};

template <>
struct Argument<at::OptionalScalarRef> {
  std::optional<at::Scalar> value;
  explicit Argument(const c10::IValue& from) {
    if (!from.isNone()) value = from.toScalar();
  }
  at::OptionalScalarRef Pass() const {
    return value ? at::OptionalScalarRef(*value) : at::OptionalScalarRef();
  }
};

// The types of the arguments of `impl`, of which the last is the result.
template <typename Function>
struct Implementation;

template <typename Class, typename... T>
struct Implementation<void (Class::*)(T...)> {
  static constexpr size_t kArguments = sizeof...(T) - 1;
  template <typename Indices>
  struct Pick;
  template <size_t... i>
  struct Pick<std::index_sequence<i...>> {
    using Type =
        std::tuple<Argument<std::remove_cvref_t<std::tuple_element_t<i, std::tuple<T...>>>>...>;
  };
  using Arguments = typename Pick<std::make_index_sequence<kArguments>>::Type;
};

// Thrown where a result is not what the graph has.
struct OtherResult {};

template <typename Op>
class StructuredKernel final : public KeptKernel, public Op {
 public:
  StructuredKernel(const torch::jit::Stack& arguments, const at::Tensor& out)
      : arguments_(Read(arguments, kIndices)), out_(out) {
    Prepare(kIndices);
  }

  std::vector<const void*> places() const override {
    std::vector<const void*> found;
    if constexpr (kHasLoop) {
      for (int i = 0; i < Op::ntensors(); ++i) found.push_back(Op::data_ptr(i));
    }
    return found;
  }
  void Move(size_t operand, void* data) override {
    if constexpr (kHasLoop) Op::unsafe_replace_operand(static_cast<int64_t>(operand), data);
  }
  void SetNumber(size_t argument, const c10::Scalar& value) override {
    SetNumber(argument, value, kIndices);
  }
  void Run() override { Run(kIndices); }

  const at::Tensor& maybe_get_output(int64_t /*index*/) override { return out_; }
  void set_output_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                          at::TensorOptions options) override {
    SetOutput(index, sizes, strides, options);
  }
  void set_output_raw_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                              at::TensorOptions options) override {
    SetOutput(index, sizes, strides, options);
  }

 private:
  using Types = Implementation<decltype(&Op::impl)>;
  static constexpr auto kIndices = std::make_index_sequence<Types::kArguments>();
  static constexpr bool kHasLoop = std::is_base_of_v<at::TensorIteratorBase, Op>;

  template <size_t... i>
  static typename Types::Arguments Read(const torch::jit::Stack& arguments,
                                        std::index_sequence<i...>) {
    if (arguments.size() != sizeof...(i)) throw OtherResult();
    return typename Types::Arguments(arguments[i]...);
  }

  template <size_t... i>
  void Prepare(std::index_sequence<i...>) {
    Op::meta(std::get<i>(arguments_).Pass()...);
  }
  template <size_t... i>
  void Run(std::index_sequence<i...>) {
    Op::impl(std::get<i>(arguments_).Pass()..., out_);
  }

  template <size_t... i>
  void SetNumber(size_t argument, const c10::Scalar& value, std::index_sequence<i...>) {
    const auto set = [&](auto& kept) {
      if constexpr (requires { kept.value = value; }) kept.value = value;
    };
    ((i == argument ? set(std::get<i>(arguments_)) : void()), ...);
  }

  void SetOutput(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                 at::TensorOptions options) {
    // A loop on elements writes to any strides.
    const bool has_strides =
        strides.empty() ? kHasLoop || out_.is_contiguous() : strides == out_.strides();
    const bool fits = sizes == out_.sizes() && options.dtype() == out_.dtype() && has_strides;
    if (!fits) throw OtherResult();
    if constexpr (kHasLoop) Op::set_output_raw_strided(index, sizes, strides, options);
  }

  typename Types::Arguments arguments_;
  const at::Tensor out_;
};

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_STRUCTURED_KERNEL_H_
