// A library of another workspace that uses a public library of torch_xla_lite.

#include "torch_xla_lite/csrc/ir/shape.h"

extern "C" long Elements() {
  using torch_xla_lite::ir::DType;
  return torch_xla_lite::ir::Shape::Of(DType{6}, {2, 3})->NumElements();
}
