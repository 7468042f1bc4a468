#include "torch_xla_lite/csrc/interpreter/numbers.h"

#include <bit>
#include <cstring>

namespace torch_xla_lite::interpreter {

using ops::ScalarView;

c10::ScalarType StoredType(c10::ScalarType dtype) {
  if (c10::isComplexType(dtype)) return c10::ScalarType::ComplexDouble;
  if (c10::isFloatingType(dtype)) return c10::ScalarType::Double;
  const bool is_own = dtype == c10::ScalarType::Bool || dtype == c10::ScalarType::UInt64;
  return is_own ? dtype : c10::ScalarType::Long;
}

ScalarView View(Number& number, c10::ScalarType from, c10::ScalarType to) {
  if (from == to) return {StoredType(from), number.words};
  const bool is_float = from == c10::ScalarType::Double;
  const auto real = std::bit_cast<double>(number.words[0]);
  const auto integer = static_cast<int64_t>(number.words[0]);
  if (to == c10::ScalarType::Double) {
    number.words[0] = std::bit_cast<uint64_t>(static_cast<double>(integer));
  } else {
    const float rounded = is_float ? static_cast<float>(real) : static_cast<float>(integer);
    std::memcpy(number.words, &rounded, sizeof(rounded));
  }
  return {to, number.words};
}

}  // namespace torch_xla_lite::interpreter
