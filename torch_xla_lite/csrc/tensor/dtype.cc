#include "torch_xla_lite/csrc/tensor/dtype.h"

#include <c10/util/Exception.h>

#include "torch_xla_lite/csrc/ir/shape.h"

namespace torch_xla_lite::tensor {
namespace {

// lowering/base/registry.py has the same ones.
bool IsXlaType(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Bool:
    case c10::ScalarType::Byte:
    case c10::ScalarType::Char:
    case c10::ScalarType::Short:
    case c10::ScalarType::Int:
    case c10::ScalarType::Long:
    case c10::ScalarType::UInt16:
    case c10::ScalarType::UInt32:
    case c10::ScalarType::UInt64:
    case c10::ScalarType::Half:
    case c10::ScalarType::BFloat16:
    case c10::ScalarType::Float:
    case c10::ScalarType::Double:
    case c10::ScalarType::ComplexFloat:
    case c10::ScalarType::ComplexDouble:
    case c10::ScalarType::Float8_e5m2:
    case c10::ScalarType::Float8_e4m3fn:
    case c10::ScalarType::Float8_e5m2fnuz:
    case c10::ScalarType::Float8_e4m3fnuz:
      return true;
    default:
      return false;
  }
}

}  // namespace

ir::Ref<const ir::Shape> ShapeOf(c10::ScalarType dtype, c10::IntArrayRef sizes,
                                 std::string_view op) {
  TORCH_CHECK_TYPE(IsXlaType(dtype), "XLA has no element type ", dtype, " (in ", op,
                   ").\nKeep this tensor on the CPU, or convert it first:  x.to(torch.float32)");
  return ir::Shape::Of(static_cast<ir::DType>(dtype), {sizes.data(), sizes.size()});
}

c10::ScalarType ScalarTypeOf(const ir::Shape* shape) {
  return static_cast<c10::ScalarType>(shape->dtype());
}

int64_t ByteSize(const ir::Shape* shape) {
  return shape->NumElements() * static_cast<int64_t>(c10::elementSize(ScalarTypeOf(shape)));
}

}  // namespace torch_xla_lite::tensor
