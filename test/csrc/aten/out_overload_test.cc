#include "torch_xla_lite/csrc/aten/out_overload.h"

#include <gtest/gtest.h>

namespace torch_xla_lite::aten {
namespace {

std::optional<std::string> OutOverloadOf(const char* name, const char* overload) {
  auto found = FindOutOverload(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload));
  if (!found.has_value()) return std::nullopt;
  return found->operator_name().overload_name;
}

TEST(FindOutOverload, FindsTheOverloadWithTheSameArguments) {
  EXPECT_EQ(OutOverloadOf("aten::add", "Tensor"), "out");
  EXPECT_EQ(OutOverloadOf("aten::lerp", "Scalar"), "Scalar_out");
}

TEST(FindOutOverload, FindsOneWithSeveralOutputs) {
  EXPECT_EQ(OutOverloadOf("aten::frexp", "Tensor"), "Tensor_out");
}

TEST(FindOutOverload, IgnoresGeneratedKernelsThatOnlyCopy) {
  EXPECT_EQ(OutOverloadOf("aten::celu", ""), std::nullopt);
}

TEST(FindOutOverload, IgnoresKernelsThatResizeTheOutput) {
  EXPECT_EQ(OutOverloadOf("aten::huber_loss", ""), std::nullopt);
}

}  // namespace
}  // namespace torch_xla_lite::aten
