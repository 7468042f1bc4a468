#include "torch_xla_lite/csrc/ops/decode.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "torch_xla_lite/csrc/ops/words.h"

namespace torch_xla_lite::ops {
namespace {

using torch::jit::Stack;
using Words = std::vector<uint64_t>;

const c10::FunctionSchema& Schema(const char* name, const char* overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).schema();
}

at::Tensor Empty() { return at::Tensor(at::detail::empty_cpu({2}, at::kFloat)); }

TEST(CallPlan, ABorrowedNumberViewsTheScalarInItsDtype) {
  CallPlan plan(Schema("aten::add", "Tensor"),
                Words{Head(Tag::kTensor),
                      Head(Tag::kScalar, static_cast<uint64_t>(at::kDouble) | kWrappedNumber),
                      Head(Tag::kScalar, static_cast<uint64_t>(at::kDouble))});
  plan.BorrowNumbers(at::kFloat);
  // Arguments that are numbers stay as they are.
  EXPECT_EQ(plan.scalar_dtypes(), (std::vector<at::ScalarType>{at::kFloat, at::kDouble}));
  std::vector<at::Tensor> operands{Empty()};
  float other = 0.1f;
  double alpha = 0.1;
  Stack stack;
  plan.Fill(operands, std::vector<ScalarView>{{at::kFloat, &other}, {at::kDouble, &alpha}}, &stack);
  EXPECT_EQ(stack[1].toTensor().const_data_ptr(), &other);
  EXPECT_EQ(stack[1].toTensor().scalar_type(), at::kFloat);
  EXPECT_TRUE(stack[1].toTensor().unsafeGetTensorImpl()->is_wrapped_number());
  EXPECT_EQ(stack[2].toScalar().toDouble(), 0.1);
}

TEST(CallPlan, ANumberIsBorrowedOnlyIfItIsPythonsAndReal) {
  for (const uint64_t number : {static_cast<uint64_t>(at::kDouble),
                                static_cast<uint64_t>(at::kComplexDouble) | kWrappedNumber}) {
    CallPlan plan(Schema("aten::mul", "Tensor"),
                  Words{Head(Tag::kTensor), Head(Tag::kScalar, number)});
    const std::vector<at::ScalarType> before = plan.scalar_dtypes();
    plan.BorrowNumbers(at::kFloat);
    EXPECT_EQ(plan.scalar_dtypes(), before);
  }
}

TEST(CallPlan, ReadsListsWithMissingTensors) {
  CallPlan plan(Schema("aten::index", "Tensor"), Words{Head(Tag::kTensor), Head(Tag::kList, 2),
                                                       Head(Tag::kNone), Head(Tag::kTensor)});
  std::vector<at::Tensor> operands{Empty(), Empty()};
  Stack stack;
  plan.Fill(operands, {}, &stack);
  auto list = stack[1].toOptionalTensorVector();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_FALSE(list[0].has_value());
  EXPECT_TRUE(list[1]->is_same(operands[1]));
}

TEST(CallPlan, ReadsStrings) {
  CallPlan plan(Schema("aten::div", "Tensor_mode"),
                Words{Head(Tag::kTensor), Head(Tag::kTensor), Head(Tag::kString, 5),
                      0x726f6f6c66 /* "floor" */});
  std::vector<at::Tensor> operands{Empty(), Empty()};
  Stack stack;
  plan.Fill(operands, {}, &stack);
  EXPECT_EQ(stack[2].toStringRef(), "floor");
}

TEST(CallPlan, WordsThatEndTooEarlyAreRefused) {
  EXPECT_THROW(CallPlan(Schema("aten::add", "Tensor"), Words{Head(Tag::kTensor)}), c10::Error);
  EXPECT_THROW(CallPlan(Schema("aten::flip", ""),
                        Words{Head(Tag::kTensor), Head(Tag::kIntList, uint64_t{1} << 50)}),
               c10::Error);
}

TEST(CallPlan, WordsThatAreLeftOverAreRefused) {
  EXPECT_THROW(CallPlan(Schema("aten::exp", ""), Words{Head(Tag::kTensor), 0}), c10::Error);
}

TEST(CallPlan, ATensorInANumbersPlaceIsRefused) {
  EXPECT_THROW(CallPlan(Schema("aten::cumsum", ""),
                        Words{Head(Tag::kTensor), Head(Tag::kTensor), Head(Tag::kNone)}),
               c10::Error);
}

TEST(ToScalar, KeepsIntegersExact) {
  int64_t value = (int64_t{1} << 53) + 1;
  EXPECT_EQ(ToScalar({at::kLong, &value}).toLong(), value);
}

TEST(CallPlan, AConstantNumberInATensorsPlaceIsWrapped) {
  CallPlan plan(Schema("aten::mul", "Tensor"),
                Words{Head(Tag::kTensor), Head(Tag::kDouble), std::bit_cast<uint64_t>(0.5)});
  std::vector<at::Tensor> operands{Empty()};
  Stack stack;
  plan.Fill(operands, {}, &stack);
  EXPECT_TRUE(stack[1].toTensor().unsafeGetTensorImpl()->is_wrapped_number());
}

TEST(CallPlan, ARuntimeNumberInATensorsPlaceHasItsDtype) {
  CallPlan plan(Schema("aten::mul", "Tensor"),
                Words{Head(Tag::kTensor),
                      Head(Tag::kScalar, static_cast<uint64_t>(at::kLong) | kWrappedNumber)});
  std::vector<at::Tensor> operands{Empty()};
  int64_t value = 5;
  std::vector<ScalarView> scalars{{at::kLong, &value}};
  Stack stack;
  plan.Fill(operands, scalars, &stack);
  EXPECT_EQ(stack[1].toTensor().scalar_type(), at::kLong);
  EXPECT_TRUE(stack[1].toTensor().unsafeGetTensorImpl()->is_wrapped_number());
}

}  // namespace
}  // namespace torch_xla_lite::ops
