#include "torch_xla_lite/csrc/tensor/host_view.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace torch_xla_lite::tensor {
namespace {

TEST(HostView, SharesTheMemory) {
  std::array<float, 6> memory{};
  at::TensorBase view = HostView(c10::ScalarType::Float, {2, 3}, memory.data());
  view.mutable_data_ptr<float>()[5] = 7;
  EXPECT_EQ(memory[5], 7);
  EXPECT_EQ(view.sizes(), (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(view.is_contiguous());
  EXPECT_EQ(view.nbytes(), 24u);
}

TEST(HostView, OfAScalarHasNoDimension) {
  double value = 3;
  EXPECT_EQ(HostView(c10::ScalarType::Double, {}, &value).dim(), 0);
}

TEST(HostView, OfNothingIsEmpty) {
  EXPECT_EQ(HostView(c10::ScalarType::Float, {0}, nullptr).numel(), 0);
  EXPECT_EQ(HostView(c10::ScalarType::Float, {3, 0}, nullptr).sizes(),
            (std::vector<int64_t>{3, 0}));
}

}  // namespace
}  // namespace torch_xla_lite::tensor
