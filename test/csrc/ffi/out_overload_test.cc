#include "torch_xla_lite/csrc/ffi/out_overload.h"

#include <gtest/gtest.h>

namespace torch_xla_lite::ffi {
namespace {

std::optional<std::string> OutOverloadOf(const char* name, const char* overload) {
  auto found = FindOutOverload(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload));
  if (!found.has_value()) return std::nullopt;
  return found->operator_name().overload_name;
}

TEST(FindOutOverload, FindsTheOverloadWithTheSameArguments) {
  EXPECT_EQ(OutOverloadOf("aten::add", "Tensor"), "out");
  EXPECT_EQ(OutOverloadOf("aten::sum", "dim_IntList"), "IntList_out");
}

TEST(FindOutOverload, FindsOneWithSeveralOutputs) {
  EXPECT_EQ(OutOverloadOf("aten::topk", ""), "values");
}

TEST(FindOutOverload, IgnoresGeneratedKernelsThatOnlyCopy) {
  EXPECT_EQ(OutOverloadOf("aten::roll", ""), std::nullopt);
}

TEST(FindOutOverload, IgnoresListOutputs) {
  EXPECT_EQ(OutOverloadOf("aten::split_with_sizes", ""), std::nullopt);
}

}  // namespace
}  // namespace torch_xla_lite::ffi
