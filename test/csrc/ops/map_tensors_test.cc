#include "torch_xla_lite/csrc/ops/map_tensors.h"

#include <ATen/EmptyTensor.h>
#include <gtest/gtest.h>

#include <optional>

namespace torch_xla_lite::ops {
namespace {

const c10::Device kMeta(c10::kMeta);

at::Tensor Cpu() { return at::Tensor(at::detail::empty_cpu({2, 3}, at::kFloat)); }

at::Tensor MetaOf(const at::Tensor& tensor) {
  return at::Tensor(at::detail::empty_meta(tensor.sizes(), tensor.scalar_type()));
}

TEST(MapArgument, ReplacesATensor) {
  const c10::IValue mapped = MapArgument(Cpu(), kMeta, MetaOf);
  EXPECT_TRUE(mapped.toTensor().is_meta());
  EXPECT_EQ(mapped.toTensor().sizes(), at::IntArrayRef({2, 3}));
}

TEST(MapArgument, ReplacesTensorsInLists) {
  const c10::List<at::Tensor> tensors({Cpu(), Cpu()});
  const c10::List<at::Tensor> mapped = MapArgument(tensors, kMeta, MetaOf).toTensorList();
  ASSERT_EQ(mapped.size(), 2u);
  EXPECT_TRUE(mapped.get(0).is_meta());
  EXPECT_TRUE(mapped.get(1).is_meta());
}

TEST(MapArgument, LeavesTheGivenListAsItIs) {
  const c10::List<at::Tensor> tensors({Cpu()});
  MapArgument(tensors, kMeta, MetaOf);
  EXPECT_TRUE(tensors.get(0).is_cpu());
}

TEST(MapArgument, AMissingTensorStaysMissing) {
  const c10::List<std::optional<at::Tensor>> tensors({std::nullopt, Cpu()});
  const auto mapped = MapArgument(tensors, kMeta, MetaOf).toOptionalTensorList();
  EXPECT_FALSE(mapped.get(0).has_value());
  EXPECT_TRUE(mapped.get(1)->is_meta());
  EXPECT_FALSE(MapArgument(at::Tensor(), kMeta, MetaOf).toTensor().defined());
}

TEST(MapArgument, ReplacesTheDevice) {
  EXPECT_EQ(MapArgument(c10::Device(c10::kCPU), kMeta, MetaOf).toDevice(), kMeta);
}

TEST(MapArgument, OtherArgumentsPass) {
  EXPECT_EQ(MapArgument(5, kMeta, MetaOf).toInt(), 5);
  EXPECT_EQ(MapArgument("floor", kMeta, MetaOf).toStringRef(), "floor");
  const c10::List<int64_t> sizes({2, 3});
  EXPECT_EQ(MapArgument(sizes, kMeta, MetaOf).toIntVector(), (std::vector<int64_t>{2, 3}));
}

}  // namespace
}  // namespace torch_xla_lite::ops
