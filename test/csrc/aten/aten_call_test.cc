#include "torch_xla_lite/csrc/aten/aten_call.h"

#include <ATen/EmptyTensor.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "torch_xla_lite/csrc/ops/words.h"

namespace torch_xla_lite::aten {
namespace {

at::Tensor Floats(std::initializer_list<float> values) {
  at::Tensor tensor(at::detail::empty_cpu({static_cast<int64_t>(values.size())}, at::kFloat));
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<float>());
  return tensor;
}

std::vector<float> FloatsOf(const at::Tensor& tensor) {
  const float* first = tensor.const_data_ptr<float>();
  return {first, first + tensor.numel()};
}

TEST(AtenCall, InPlaceOpsLeaveTheirOperandsAlone) {
  AtenCall call("aten::exp_", std::vector<uint64_t>{ops::Head(ops::Tag::kTensor)}, "1");
  std::vector<at::Tensor> operands{Floats({0, 0})};
  std::vector<at::Tensor> outputs{Floats({0, 0})};
  call.Run(operands, {}, outputs);
  EXPECT_EQ(FloatsOf(operands[0]), (std::vector<float>{0, 0}));
  EXPECT_EQ(FloatsOf(outputs[0]), (std::vector<float>{1, 1}));
}

TEST(AtenCall, AResultOfAnotherShapeIsRefused) {
  AtenCall call(
      "aten::flip",
      std::vector<uint64_t>{ops::Head(ops::Tag::kTensor), ops::Head(ops::Tag::kIntList, 1), 0},
      "1");
  std::vector<at::Tensor> operands{Floats({1, 2})};
  std::vector<at::Tensor> outputs{Floats({0, 0, 0})};
  EXPECT_THROW(call.Run(operands, {}, outputs), UnexpectedResults);
}

}  // namespace
}  // namespace torch_xla_lite::aten
