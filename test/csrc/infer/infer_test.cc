#include "torch_xla_lite/csrc/infer/infer.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/csrc/record/recorder_test_base.h"
#include "torch_xla_lite/csrc/ops/call.h"
#include "torch_xla_lite/csrc/ops/op_info.h"
#include "torch_xla_lite/csrc/record/transfer.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"

namespace torch_xla_lite::infer {
namespace {

using record::Iota;
using InferTest = record::RecorderTest;
using Shapes = std::vector<const ir::Shape*>;
using tensor::OpSignature;

ir::Ref<OpSignature> InferOp(const std::string& name, const std::string& overload,
                             const std::vector<c10::IValue>& arguments) {
  const ops::OpInfo info(
      c10::Dispatcher::singleton().findSchemaOrThrow(("aten::" + name).c_str(), overload.c_str()),
      {});
  ops::Call call;
  EXPECT_EQ(call.Read(info, arguments), ops::Call::Status::kOk);
  return Infer(info, arguments, call);
}

// Lives as long as the signature that it is compared with.
const ir::Shape* Float(std::vector<int64_t> sizes) {
  return tensor::ShapeOf(at::kFloat, sizes, "").get();
}

TEST_F(InferTest, AListOfResultsIsAsLongAsItIs) {
  const auto signature = InferOp("split", "Tensor", {record::Upload(Iota({5})), 2, 0});
  EXPECT_EQ(signature->outputs, (Shapes{Float({2}), Float({2}), Float({1})}));
  EXPECT_EQ(signature->result_sizes, std::vector{3});
}

TEST_F(InferTest, AViewHasTheLayoutThatTorchPromises) {
  const auto signature = InferOp("t", "", {record::Upload(Iota({2, 3}))});
  EXPECT_EQ(signature->layouts[0].strides, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(signature->layouts[0].offset, 0);
}

TEST_F(InferTest, ADenseViewHasNoLayoutOfItsOwn) {
  const auto signature =
      InferOp("view", "", {record::Upload(Iota({2, 3})), c10::List<int64_t>({6})});
  EXPECT_TRUE(signature->layouts[0].strides.empty());
}

TEST_F(InferTest, AWrongViewIsAnError) {
  const at::Tensor transposed = record::Upload(Iota({2, 3})).t();
  EXPECT_THROW(InferOp("view", "", {transposed, c10::List<int64_t>({6})}), std::exception);
}

TEST_F(InferTest, WhatOnlyChecksIsForTheCpu) {
  const auto signature =
      InferOp("_linalg_check_errors", "",
              {record::Upload(Iota({}, at::kInt)), std::string("linalg.cholesky"), false});
  EXPECT_TRUE(signature->runs_on_cpu);
}

}  // namespace
}  // namespace torch_xla_lite::infer
