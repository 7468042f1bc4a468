// The runtime scalars of a node, as they are stored (ops/call.cc), and as kernels take them.

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_NUMBERS_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_NUMBERS_H_

#include <c10/core/ScalarType.h>
#include <c10/util/complex.h>

#include <cstdint>

#include "torch_xla_lite/csrc/ops/decode.h"

namespace torch_xla_lite::interpreter {

// A copy of a scalar of a node, which is not aligned for complex numbers.
struct Number {
  alignas(c10::complex<double>) uint64_t words[2];
};

// As int64, uint64, double or a pair.
c10::ScalarType StoredType(c10::ScalarType dtype);

// A scalar that is stored as `from`, as `to`. Converts as torch converts tensors: without a check.
ops::ScalarView View(Number& number, c10::ScalarType from, c10::ScalarType to);

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_NUMBERS_H_
