// Converts element types between torch and the IR.
//
// The IR's DType is the number of the c10::ScalarType. ShapeOf refuses types that XLA does
// not have.
//
//   ir::Ref<const ir::Shape> shape = ShapeOf(at::kFloat, {2, 3}, "aten::zeros");
//   ScalarTypeOf(shape) == at::kFloat;   // true

#ifndef TORCH_XLA_LITE_CSRC_TENSOR_DTYPE_H_
#define TORCH_XLA_LITE_CSRC_TENSOR_DTYPE_H_

#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <string_view>

#include "torch_xla_lite/csrc/ir/ref.h"
#include "torch_xla_lite/csrc/ir/shape.h"

namespace torch_xla_lite::tensor {

// Throws c10::TypeError, naming the op, for a type that XLA does not have.
ir::Ref<const ir::Shape> ShapeOf(c10::ScalarType dtype, c10::IntArrayRef sizes,
                                 std::string_view op);

c10::ScalarType ScalarTypeOf(const ir::Shape* shape);

int64_t ByteSize(const ir::Shape* shape);

}  // namespace torch_xla_lite::tensor

#endif  // TORCH_XLA_LITE_CSRC_TENSOR_DTYPE_H_
