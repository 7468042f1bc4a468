// Wider dtypes, for calls whose dtypes ATen's CPU kernel refuses.
//
// A lowering computes 16-bit floats in float32 and rounds its results once, and integers wrap in
// any width. So the kernel of a wider dtype gives what the lowering gives, once its results are
// converted back.
//
//   Widen(op.schema(), Width::kWide, &arguments);
//   op.callBoxed(&arguments);

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_WIDER_DTYPES_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_WIDER_DTYPES_H_

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include <cstdint>

namespace torch_xla_lite::interpreter {

enum class Width : uint8_t {
  kOwn,
  kWide,    // 16-bit floats as float32, integers as int64
  kDouble,  // integers as float64
  kNone,    // no kernel takes the dtypes in any width
};

// The dtype in which a width computes what belongs to `dtype`.
c10::ScalarType WiderDtype(c10::ScalarType dtype, Width width);

// Converts the tensors and dtypes among the arguments of a call.
void Widen(const c10::FunctionSchema& schema, Width width, torch::jit::Stack* arguments);

// Whether an error says that a kernel refuses a dtype, or may say so: many of ATen's errors have no
// class of their own, so their words decide. A division of integers by zero is no refusal.
bool IsRefusal(const c10::Error& error);
bool MayBeRefusal(const c10::Error& error);

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_WIDER_DTYPES_H_
