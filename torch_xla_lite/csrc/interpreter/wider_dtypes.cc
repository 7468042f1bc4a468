#include "torch_xla_lite/csrc/interpreter/wider_dtypes.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <string>
#include <typeinfo>

#include "torch_xla_lite/csrc/ops/map_tensors.h"

namespace torch_xla_lite::interpreter {
namespace {

constexpr const char* kWordsOfRefusals[] = {"type", "implemented", "support", "floating point"};

// bool is no number, and bytes may be a mask.
bool IsNarrowInteger(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Char:
    case c10::ScalarType::Short:
    case c10::ScalarType::Int:
    case c10::ScalarType::UInt16:
    case c10::ScalarType::UInt32:
      return true;
    default:
      return false;
  }
}

bool IsDtype(const c10::Argument& argument) {
  c10::TypePtr type = argument.real_type();
  if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  return type->kind() == c10::TypeKind::ScalarTypeType;
}

}  // namespace

c10::ScalarType WiderDtype(c10::ScalarType dtype, Width width) {
  using c10::ScalarType;
  if (width == Width::kOwn) return dtype;
  if (c10::isReducedFloatingType(dtype)) return ScalarType::Float;
  if (width == Width::kWide) return IsNarrowInteger(dtype) ? ScalarType::Long : dtype;
  const bool is_number = c10::isIntegralType(dtype, /*includeBool=*/false);
  return is_number ? ScalarType::Double : dtype;
}

void Widen(const c10::FunctionSchema& schema, Width width, torch::jit::Stack* arguments) {
  const auto convert = [&](const at::Tensor& tensor) {
    return tensor.to(WiderDtype(tensor.scalar_type(), width));
  };
  for (size_t i = 0; i < arguments->size(); ++i) {
    c10::IValue& argument = (*arguments)[i];
    if (argument.isInt() && IsDtype(schema.arguments()[i])) {
      argument = WiderDtype(argument.toScalarType(), width);
    } else {
      argument = ops::MapArgument(argument, at::kCPU, convert);
    }
  }
}

bool IsRefusal(const c10::Error& error) {
  return typeid(error) == typeid(c10::NotImplementedError) ||
         typeid(error) == typeid(c10::TypeError);
}

bool MayBeRefusal(const c10::Error& error) {
  if (IsRefusal(error)) return true;
  if (typeid(error) != typeid(c10::Error)) return false;
  const std::string text = error.what_without_backtrace();
  return std::ranges::any_of(
      kWordsOfRefusals, [&](const char* word) { return text.find(word) != std::string::npos; });
}

}  // namespace torch_xla_lite::interpreter
