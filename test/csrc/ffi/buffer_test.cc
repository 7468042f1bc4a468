#include "torch_xla_lite/csrc/ffi/buffer.h"

#include <gtest/gtest.h>

namespace torch_xla_lite::ffi {
namespace {

TEST(ScalarTypeOf, KnowsTheTypesOfBothSides) {
  EXPECT_EQ(ScalarTypeOf(XLA_FFI_DataType_PRED), c10::ScalarType::Bool);
  EXPECT_EQ(ScalarTypeOf(XLA_FFI_DataType_BF16), c10::ScalarType::BFloat16);
  EXPECT_EQ(ScalarTypeOf(XLA_FFI_DataType_C64), c10::ScalarType::ComplexFloat);
  EXPECT_EQ(ScalarTypeOf(XLA_FFI_DataType_U64), c10::ScalarType::UInt64);
}

}  // namespace
}  // namespace torch_xla_lite::ffi
