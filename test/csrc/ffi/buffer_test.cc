#include "torch_xla_lite/csrc/ffi/buffer.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace torch_xla_lite::ffi {
namespace {

TEST(ScalarTypeOf, KnowsTheTypesOfBothSides) {
  EXPECT_EQ(ScalarTypeOf(XLA_FFI_DataType_PRED), c10::ScalarType::Bool);
  EXPECT_EQ(ScalarTypeOf(XLA_FFI_DataType_BF16), c10::ScalarType::BFloat16);
  EXPECT_EQ(ScalarTypeOf(XLA_FFI_DataType_C64), c10::ScalarType::ComplexFloat);
  EXPECT_EQ(ScalarTypeOf(XLA_FFI_DataType_U64), c10::ScalarType::UInt64);
}

TEST(ScalarTypeOf, NeverGuesses) {
  EXPECT_THROW(ScalarTypeOf(XLA_FFI_DataType_S4), c10::Error);
  EXPECT_THROW(ScalarTypeOf(XLA_FFI_DataType_INVALID), c10::Error);
  EXPECT_THROW(ScalarTypeOf(static_cast<XLA_FFI_DataType>(99)), c10::Error);
}

TEST(View, SharesTheMemory) {
  std::array<float, 6> memory{};
  at::TensorBase view = View(c10::ScalarType::Float, {2, 3}, memory.data());
  view.mutable_data_ptr<float>()[5] = 7;
  EXPECT_EQ(memory[5], 7);
  EXPECT_EQ(view.sizes(), (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(view.is_contiguous());
  EXPECT_EQ(view.nbytes(), 24u);
}

TEST(View, OfAScalarHasNoDimension) {
  double value = 3;
  EXPECT_EQ(View(c10::ScalarType::Double, {}, &value).dim(), 0);
}

TEST(View, OfNothingIsEmpty) {
  EXPECT_EQ(View(c10::ScalarType::Float, {0}, nullptr).numel(), 0);
  EXPECT_EQ(View(c10::ScalarType::Float, {3, 0}, nullptr).sizes(), (std::vector<int64_t>{3, 0}));
}

}  // namespace
}  // namespace torch_xla_lite::ffi
