#include "torch_xla_lite/csrc/dispatch/numbers.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace torch_xla_lite::dispatch {
namespace {

// A Scalar, or the tensor on the CPU that torch makes of a Python number.
std::optional<c10::Scalar> NumberOf(const c10::IValue& value) {
  if (value.isScalar()) return value.toScalar();
  if (!value.isTensor() || !value.toTensor().defined()) return std::nullopt;
  const at::Tensor& tensor = value.toTensor();
  if (!tensor.device().is_cpu() || tensor.dim() != 0) return std::nullopt;
  return tensor.item();
}

// c10's rule: an unsigned dtype takes negative integers whose absolute value it can hold.
template <typename T>
bool Holds(const c10::Scalar& number) {
  if (number.isFloatingPoint()) return !c10::overflows<T>(number.toDouble());
  return !number.isIntegral(/*includeBool=*/true) || !c10::overflows<T>(number.toLong());
}

bool Holds(c10::ScalarType dtype, const c10::Scalar& number) {
  switch (dtype) {
    case c10::ScalarType::Byte:
      return Holds<uint8_t>(number);
    case c10::ScalarType::Char:
      return Holds<int8_t>(number);
    case c10::ScalarType::Short:
      return Holds<int16_t>(number);
    case c10::ScalarType::Int:
      return Holds<int32_t>(number);
    case c10::ScalarType::Long:
      return Holds<int64_t>(number);
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
  if (!number || !number->isIntegral(/*includeBool=*/true)) return false;
  // What is left of it in a narrow dtype.
  const auto bits = 8 * c10::elementSize(dtype);
  return static_cast<uint64_t>(number->toLong()) << (64 - bits) == 0;
}

}  // namespace

bool NumbersFit(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments, c10::ScalarType dtype) {
  const bool held =
      std::ranges::all_of(info.ranged_numbers, [&](int i) { return AllHeld(dtype, arguments[i]); });
  return held && (info.divisor < 0 || !IsZero(dtype, arguments[info.divisor]));
}

}  // namespace torch_xla_lite::dispatch
