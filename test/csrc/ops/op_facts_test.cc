#include "torch_xla_lite/csrc/ops/op_facts.h"

#include <gtest/gtest.h>

namespace torch_xla_lite::ops {
namespace {

TEST(OpFacts, AreThoseOfTheDecorator) {
  const OpFacts& facts = FactsOf("aten::addmm");
  EXPECT_TRUE(facts.is_lowered);
  EXPECT_EQ(facts.one_dtype, "self mat1 mat2");
  EXPECT_EQ(facts.shares, "self=same");
}

TEST(OpFacts, OfAnUnknownOpAreThoseOfMost) {
  EXPECT_FALSE(FactsOf("aten::addm").is_lowered);
  EXPECT_FALSE(FactsOf("zzz::last").is_lowered);
  EXPECT_TRUE(FactsOf("").by_value);
}

TEST(OpFacts, AWordIsNoPartOfAnother) {
  EXPECT_TRUE(HasWord("self mat1 mat2", "mat2"));
  EXPECT_TRUE(HasWord("self", "self"));
  EXPECT_FALSE(HasWord("self mat1", "mat"));
  EXPECT_FALSE(HasWord("mat1 self", "1"));
  EXPECT_FALSE(HasWord("", "self"));
}

TEST(OpFacts, KindsOfDtypesAreThoseOfNumpy) {
  EXPECT_TRUE(IsOfKind(at::kBool, "b"));
  EXPECT_TRUE(IsOfKind(at::kByte, "u"));
  EXPECT_TRUE(IsOfKind(at::kLong, "iu"));
  EXPECT_TRUE(IsOfKind(at::kBFloat16, "h"));
  EXPECT_FALSE(IsOfKind(at::kHalf, "f"));
  EXPECT_TRUE(IsOfKind(at::kComplexFloat, "c"));
  EXPECT_FALSE(IsOfKind(at::kFloat8_e5m2, "biufhc"));
}

}  // namespace
}  // namespace torch_xla_lite::ops
