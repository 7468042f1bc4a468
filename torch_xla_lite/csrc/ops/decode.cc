#include "torch_xla_lite/csrc/ops/decode.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/jit_type.h>
#include <c10/util/Exception.h>

#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "torch_xla_lite/csrc/ops/words.h"
#include "torch_xla_lite/csrc/tensor/host_view.h"

namespace torch_xla_lite::ops {

using c10::IValue;
using c10::TypeKind;

// Reads the words of one call, argument by argument, and checks them against the types of the
// schema.
class CallPlan::Builder {
 public:
  Builder(const c10::FunctionSchema& schema, std::span<const uint64_t> words)
      : schema_(schema), words_(words) {}

  void Build(CallPlan* plan, Rest rest) {
    for (const c10::Argument& argument : schema_.arguments()) {
      current_ = argument.name();
      plan->arguments_.push_back(Read(*argument.type()));
    }
    current_ = "(end)";
    Expect(rest == Rest::kIgnored || position_ == words_.size(), "words are left over");
    plan->operand_count_ = operand_count_;
    plan->scalar_dtypes_ = std::move(scalar_dtypes_);
  }

 private:
  void Expect(bool condition, const char* what) const {
    TORCH_CHECK(condition, "Malformed words of a call to ", schema_.operator_name(), ", argument ",
                current_, ": ", what, " (at word ", position_, " of ", words_.size(), ").");
  }

  uint64_t Next() {
    Expect(position_ < words_.size(), "the words end too early");
    return words_[position_++];
  }
  int64_t NextInt() { return static_cast<int64_t>(Next()); }
  double NextDouble() { return std::bit_cast<double>(Next()); }

  // Before memory is reserved, so that a malformed head cannot cause an unbounded allocation.
  void ExpectWords(uint64_t count) const {
    Expect(count <= words_.size() - position_, "the words end too early");
  }

  static Argument Constant(IValue value) {
    Argument argument;
    argument.constant = std::move(value);
    return argument;
  }

  Argument Read(const c10::Type& type) {
    if (type.kind() == TypeKind::OptionalType) {
      if (position_ < words_.size() && TagOf(words_[position_]) == Tag::kNone) {
        ++position_;
        return Constant(IValue());
      }
      return Read(*type.castRaw<c10::OptionalType>()->getElementType());
    }
    const uint64_t head = Next();
    const uint64_t payload = PayloadOf(head);
    ExpectWords(WordsAfter(head));
    switch (TagOf(head)) {
      case Tag::kNone:
        // A missing tensor that is not optional in the schema is an undefined tensor.
        if (type.kind() == TypeKind::TensorType) return Constant(at::Tensor());
        return Constant(IValue());
      case Tag::kTensor:
        Expect(type.kind() == TypeKind::TensorType, "the op does not take a tensor here");
        return Operand();
      case Tag::kScalar:
        return Runtime(type, payload);
      case Tag::kBool:
        return Number(type, payload != 0);
      case Tag::kInt:
        return Number(type, NextInt());
      case Tag::kDouble:
        return Number(type, NextDouble());
      case Tag::kComplex: {
        double real = NextDouble();
        return Number(type, c10::complex<double>(real, NextDouble()));
      }
      case Tag::kString:
        Expect(type.kind() == TypeKind::StringType, "the op does not take a string here");
        return Constant(ReadString(payload));
      case Tag::kDevice:
        Expect(type.kind() == TypeKind::DeviceObjType, "the op does not take a device here");
        return Constant(c10::Device(c10::DeviceType::CPU));
      case Tag::kList:
        return ReadList(type, payload);
      case Tag::kIntList:
        return NumberList<int64_t>(type, payload, [this] { return NextInt(); });
      case Tag::kDoubleList:
        return NumberList<double>(type, payload, [this] { return NextDouble(); });
      case Tag::kBoolList:
        return NumberList<bool>(type, payload, [this] { return Next() != 0; });
    }
    Expect(false, "unknown tag");
    return {};
  }

  // A constant number, converted to the type in the schema.
  Argument Number(const c10::Type& type, const c10::Scalar& value) const {
    switch (type.kind()) {
      case TypeKind::NumberType:
        return Constant(value);
      case TypeKind::BoolType:
        return Constant(value.toBool());
      case TypeKind::IntType:
      case TypeKind::SymIntType:
        Expect(value.isIntegral(/*includeBool=*/true), "the op takes an integer here");
        return Constant(value.toLong());
      case TypeKind::FloatType:
        return Constant(value.toDouble());
      case TypeKind::TensorType: {
        // The 2 in `x * 2`.
        at::Tensor tensor = at::detail::scalar_tensor_static(value, value.type(), at::kCPU);
        tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
        return Constant(std::move(tensor));
      }
      default:
        Expect(false, "the op does not take a number here");
        return {};
    }
  }

  template <typename T, typename NextItem>
  Argument NumberList(const c10::Type& type, uint64_t count, NextItem next) {
    Expect(type.kind() == TypeKind::ListType, "the op does not take a list here");
    c10::List<T> list;
    list.reserve(count);
    for (; count > 0; --count) list.push_back(next());
    return Constant(std::move(list));
  }

  Argument Operand() {
    Argument argument;
    argument.source = Source::kOperand;
    argument.index = static_cast<uint32_t>(operand_count_++);
    return argument;
  }

  Argument Runtime(const c10::Type& type, uint64_t payload) {
    Argument argument;
    argument.index = static_cast<uint32_t>(scalar_dtypes_.size());
    const uint64_t dtype = payload & (kWrappedNumber - 1);
    Expect(dtype < static_cast<uint64_t>(c10::ScalarType::Undefined), "unknown scalar type");
    argument.dtype = scalar_dtypes_.emplace_back(static_cast<c10::ScalarType>(dtype));
    switch (type.kind()) {
      case TypeKind::TensorType:
        argument.source = Source::kNumberTensor;
        argument.wrapped = (payload & kWrappedNumber) != 0;
        break;
      case TypeKind::NumberType:
        argument.source = Source::kNumber;
        break;
      case TypeKind::BoolType:
        argument.source = Source::kBool;
        break;
      case TypeKind::IntType:
      case TypeKind::SymIntType:
        argument.source = Source::kInt;
        break;
      case TypeKind::FloatType:
        argument.source = Source::kFloat;
        break;
      default:
        Expect(false, "the op does not take a runtime scalar here");
    }
    return argument;
  }

  std::string ReadString(uint64_t length) {
    std::string text(length, '\0');
    // The words hold the characters in memory order of a little-endian machine, which every XLA
    // host is.
    std::memcpy(text.data(), words_.data() + position_, length);
    position_ += WordsAfter(Head(Tag::kString, length));
    return text;
  }

  Argument ReadList(const c10::Type& type, uint64_t count) {
    Expect(type.kind() == TypeKind::ListType, "the op does not take a list here");
    const c10::Type& item = *type.castRaw<c10::ListType>()->getElementType();
    const bool optional = item.kind() == TypeKind::OptionalType;
    const TypeKind kind =
        optional ? item.castRaw<c10::OptionalType>()->getElementType()->kind() : item.kind();
    ExpectWords(count);  // Each item has at least a head.
    std::vector<Argument> items(count);
    for (Argument& value : items) value = Read(item);
    switch (kind) {
      case TypeKind::TensorType:
        return List(optional ? Source::kMaybeTensors : Source::kTensors, std::move(items));
      case TypeKind::NumberType:
        return List(Source::kNumbers, std::move(items));
      case TypeKind::StringType:
        return Constant(ConstantList<std::string>(
            items, [](const IValue& value) { return value.toStringRef(); }));
      case TypeKind::IntType:
      case TypeKind::SymIntType:
        return Constant(ConstantList<int64_t>(items, [](const IValue& v) { return v.toInt(); }));
      case TypeKind::FloatType:
        return Constant(ConstantList<double>(items, [](const IValue& v) { return v.toDouble(); }));
      case TypeKind::BoolType:
        return Constant(ConstantList<bool>(items, [](const IValue& v) { return v.toBool(); }));
      default:
        Expect(false, "a list of this type cannot be passed");
        return {};
    }
  }

  static Argument List(Source source, std::vector<Argument> items) {
    Argument list;
    list.source = source;
    list.items = std::move(items);
    return list;
  }

  template <typename T, typename Convert>
  c10::List<T> ConstantList(const std::vector<Argument>& items, Convert convert) const {
    c10::List<T> list;
    for (const Argument& item : items) {
      Expect(item.source == Source::kConstant && !item.constant.isNone(),
             "items of this list cannot be runtime scalars");
      list.push_back(convert(item.constant));
    }
    return list;
  }

  const c10::FunctionSchema& schema_;
  std::span<const uint64_t> words_;
  size_t position_ = 0;
  size_t operand_count_ = 0;
  std::vector<c10::ScalarType> scalar_dtypes_;
  std::string current_;
};

CallPlan::CallPlan(const c10::FunctionSchema& schema, std::span<const uint64_t> words, Rest rest) {
  Builder(schema, words).Build(this, rest);
}

c10::Scalar ToScalar(ScalarView view) {
  switch (view.dtype) {
#define CASE(ctype, name)     \
  case c10::ScalarType::name: \
    return c10::Scalar(*static_cast<const ctype*>(view.data));
    AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_EXCEPT_COMPLEX_HALF_F8NZ(CASE)
    CASE(uint16_t, UInt16)
    CASE(uint32_t, UInt32)
    CASE(uint64_t, UInt64)
#undef CASE
    default:
      TORCH_CHECK(false, "A scalar argument cannot have dtype ", view.dtype, ".");
  }
}

IValue CallPlan::Make(const Argument& argument, std::span<const at::Tensor> operands,
                      std::span<const ScalarView> scalars) {
  switch (argument.source) {
    case Source::kConstant:
      return argument.constant;
    case Source::kOperand:
      return operands[argument.index];
    case Source::kNumber:
      return ToScalar(scalars[argument.index]);
    case Source::kBool:
      return ToScalar(scalars[argument.index]).toBool();
    case Source::kInt:
      return ToScalar(scalars[argument.index]).toLong();
    case Source::kFloat:
      return ToScalar(scalars[argument.index]).toDouble();
    case Source::kNumberTensor: {
      const ScalarView& scalar = scalars[argument.index];
      at::Tensor tensor(
          argument.borrowed
              // No kernel writes to a number.
              ? tensor::HostView(argument.dtype, {}, const_cast<void*>(scalar.data))
              : at::detail::scalar_tensor_static(ToScalar(scalar), argument.dtype, at::kCPU));
      tensor.unsafeGetTensorImpl()->set_wrapped_number(argument.wrapped);
      return tensor;
    }
    case Source::kTensors: {
      c10::List<at::Tensor> list;
      list.reserve(argument.items.size());
      for (const Argument& item : argument.items) {
        list.push_back(Make(item, operands, scalars).toTensor());
      }
      return list;
    }
    case Source::kMaybeTensors: {
      c10::List<std::optional<at::Tensor>> list;
      list.reserve(argument.items.size());
      for (const Argument& item : argument.items) {
        IValue value = Make(item, operands, scalars);
        list.push_back(value.isNone() ? std::nullopt : std::optional(value.toTensor()));
      }
      return list;
    }
    case Source::kNumbers: {
      c10::List<c10::Scalar> list;
      list.reserve(argument.items.size());
      for (const Argument& item : argument.items) {
        list.push_back(Make(item, operands, scalars).toScalar());
      }
      return list;
    }
  }
  TORCH_INTERNAL_ASSERT(false, "unknown source of an argument");
}

std::optional<std::vector<CallPlan::RuntimeNumber>> CallPlan::RuntimeNumbers() const {
  std::vector<RuntimeNumber> numbers;
  const auto add = [&](const Argument& argument, size_t i, std::optional<size_t> item) {
    const bool is_tensor = argument.source == Source::kNumberTensor;
    if (!is_tensor && argument.source != Source::kNumber) return;
    numbers.push_back({i, item, is_tensor, argument.wrapped});
  };
  for (size_t i = 0; i < arguments_.size(); ++i) {
    add(arguments_[i], i, {});
    const std::vector<Argument>& items = arguments_[i].items;
    for (size_t k = 0; k < items.size(); ++k) add(items[k], i, k);
  }
  if (numbers.size() != scalar_count()) return std::nullopt;
  return numbers;
}

void CallPlan::BorrowNumbers(c10::ScalarType dtype) {
  for (Argument& argument : arguments_) {
    const bool is_number =
        argument.dtype == c10::ScalarType::Double || argument.dtype == c10::ScalarType::Long;
    if (argument.source != Source::kNumberTensor || !argument.wrapped || !is_number) continue;
    argument.borrowed = true;
    argument.dtype = scalar_dtypes_[argument.index] = dtype;
  }
}

void CallPlan::Fill(std::span<const at::Tensor> operands, std::span<const ScalarView> scalars,
                    torch::jit::Stack* stack) const {
  TORCH_CHECK(operands.size() == operand_count_ && scalars.size() == scalar_count(),
              "The words of the call have ", operand_count_, " operands and ", scalar_count(),
              " runtime scalars, but ", operands.size(), " and ", scalars.size(), " were passed.");
  for (const Argument& argument : arguments_) {
    stack->push_back(Make(argument, operands, scalars));
  }
}

}  // namespace torch_xla_lite::ops
