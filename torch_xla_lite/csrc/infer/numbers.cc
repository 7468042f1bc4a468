#include "torch_xla_lite/csrc/infer/numbers.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/_local_scalar_dense_native.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace torch_xla_lite::infer {
namespace {

// A Scalar, or the tensor on the CPU that torch makes of a Python number.
std::optional<c10::Scalar> NumberOf(const c10::IValue& value) {
  // isScalar() leaves out integers beyond int64.
  if (value.isScalar() || value.isUnsigned()) return value.toScalar();
  if (!value.isTensor() || !value.toTensor().defined()) return std::nullopt;
  const at::Tensor& tensor = value.toTensor();
  if (!tensor.device().is_cpu() || tensor.dim() != 0) return std::nullopt;
  // Without the dispatcher: the caller has the record lock, and a mode of the user may call
  // anything.
  return at::native::_local_scalar_dense_cpu(tensor);
}

// c10's rule: an unsigned dtype takes negative integers whose absolute value it can hold, and one
// of floats takes infinity.
template <typename T>
bool Holds(const c10::Scalar& number) {
  if (number.isComplex()) return !c10::overflows<T>(number.toComplexDouble());
  if (number.isFloatingPoint()) return !c10::overflows<T>(number.toDouble());
  if (number.isUnsigned()) return !c10::overflows<T>(number.toUInt64());
  return !number.isIntegral(/*includeBool=*/true) || !c10::overflows<T>(number.toLong());
}

// Every number is true or false.
template <>
bool Holds<bool>(const c10::Scalar&) {
  return true;
}

bool Holds(c10::ScalarType dtype, const c10::Scalar& number) {
  switch (dtype) {
#define HOLDS(type, name)     \
  case c10::ScalarType::name: \
    return Holds<type>(number);
    AT_FORALL_SCALAR_TYPES_WITH_COMPLEX(HOLDS)
    HOLDS(uint16_t, UInt16)
    HOLDS(uint32_t, UInt32)
    HOLDS(uint64_t, UInt64)
#undef HOLDS
    default:
      return true;
  }
}

bool AllHeld(c10::ScalarType dtype, const c10::IValue& value) {
  if (value.isList()) {
    return std::ranges::all_of(value.toListRef(),
                               [&](const c10::IValue& item) { return AllHeld(dtype, item); });
  }
  const auto number = NumberOf(value);
  return !number || Holds(dtype, *number);
}

bool IsZero(c10::ScalarType dtype, const c10::IValue& value) {
  const auto number = NumberOf(value);
  if (!number) return false;
  if (!number->isIntegral(/*includeBool=*/true)) return number->equal(0);
  // The number truncated to the dtype's width.
  const auto bits = 8 * c10::elementSize(dtype);
  const bool is_unsigned = number->isUnsigned();
  const auto word = is_unsigned ? number->toUInt64() : static_cast<uint64_t>(number->toLong());
  return word << (64 - bits) == 0;
}

}  // namespace

bool NumbersFit(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
                c10::ScalarType dtype) {
  const bool held =
      std::ranges::all_of(info.ranged_numbers, [&](int i) { return AllHeld(dtype, arguments[i]); });
  const std::string_view divided = info.facts->divides;
  const bool divides = divided == "all" ||
                       (divided == "integers" && c10::isIntegralType(dtype, /*includeBool=*/false));
  if (!divides) return held;
  return held && !IsZero(dtype, arguments[1]);
}

}  // namespace torch_xla_lite::infer
