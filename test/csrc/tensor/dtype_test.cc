#include "torch_xla_lite/csrc/tensor/dtype.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <string>

namespace torch_xla_lite::tensor {
namespace {

class EachXlaType : public testing::TestWithParam<c10::ScalarType> {};

TEST_P(EachXlaType, ComesBackFromItsShape) {
  EXPECT_EQ(ScalarTypeOf(ShapeOf(GetParam(), {2, 3}, "aten::zeros").get()), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Dtype, EachXlaType,
                         testing::Values(c10::kBool, c10::kByte, c10::kChar, c10::kShort, c10::kInt,
                                         c10::kLong, c10::kUInt16, c10::kUInt32, c10::kUInt64,
                                         c10::kHalf, c10::kBFloat16, c10::kFloat, c10::kDouble,
                                         c10::kComplexFloat, c10::kComplexDouble, c10::kFloat8_e5m2,
                                         c10::kFloat8_e4m3fn),
                         [](const auto& type) { return std::string(c10::toString(type.param)); });

class EachOtherType : public testing::TestWithParam<c10::ScalarType> {};

TEST_P(EachOtherType, IsRefused) {
  EXPECT_THROW(ShapeOf(GetParam(), {2, 3}, "aten::zeros"), c10::TypeError);
}

INSTANTIATE_TEST_SUITE_P(Dtype, EachOtherType,
                         testing::Values(c10::kQInt8, c10::kQUInt8, c10::kQInt32, c10::kComplexHalf,
                                         c10::ScalarType::Bits8, c10::ScalarType::UInt4),
                         [](const auto& type) { return std::string(c10::toString(type.param)); });

TEST(ShapeOf, TheErrorNamesTypeAndOpAndAWayOut) {
  try {
    ShapeOf(c10::kQInt8, {2}, "aten::relu");
    FAIL() << "must throw";
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    EXPECT_NE(text.find("QInt8"), std::string::npos) << text;
    EXPECT_NE(text.find("aten::relu"), std::string::npos) << text;
    EXPECT_NE(text.find("x.to(torch.float32)"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace torch_xla_lite::tensor
