// Shapes of recorded values.
//
// A Shape is what is known about a value before it exists: element type and dimensions. Shapes are
// interned: equal shapes are one object, so they are compared by address, and a shape takes one
// word in the key of an op.
//
//   Ref<const Shape> s = Shape::Of(DType{6}, {8, 3});
//   s == Shape::Of(DType{6}, {8, 3});   // true
//   s->NumElements();                   // 24
//
// Thread-safe. A shape lives as long as something refers to it.

#ifndef TORCH_XLA_LITE_CSRC_IR_SHAPE_H_
#define TORCH_XLA_LITE_CSRC_IR_SHAPE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "torch_xla_lite/csrc/ir/ref.h"

namespace torch_xla_lite::ir {

// An element type, as the number that the recording framework uses for it. The IR only copies and
// compares it.
enum class DType : uint8_t {};

class Shape : public RefCounted {
 public:
  static Ref<const Shape> Of(DType dtype, std::span<const int64_t> dims);
  static Ref<const Shape> Of(DType dtype, std::initializer_list<int64_t> dims) {
    return Of(dtype, std::span<const int64_t>(dims.begin(), dims.size()));
  }

  DType dtype() const { return dtype_; }
  // Of dtype and dimensions; the same in every process.
  uint64_t hash() const;
  const std::vector<int64_t>& dims() const { return dims_; }
  int64_t NumElements() const;
  std::string ToString() const;

 private:
  Shape(DType dtype, std::span<const int64_t> dims)
      : dtype_(dtype), dims_(dims.begin(), dims.end()) {}

  const DType dtype_;
  const std::vector<int64_t> dims_;
};

}  // namespace torch_xla_lite::ir

#endif  // TORCH_XLA_LITE_CSRC_IR_SHAPE_H_
