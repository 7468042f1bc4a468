#include "torch_xla_lite/csrc/record/cpu_fallback.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/csrc/record/recorder_test_base.h"
#include "torch_xla_lite/csrc/record/transfer.h"

namespace torch_xla_lite::record {
namespace {

using CpuFallbackTest = RecorderTest;

TEST_F(CpuFallbackTest, AWrongCallIsNotCounted) {
  const at::Tensor x = Upload(Iota({2, 3}));
  EXPECT_THROW(x.mm(x), c10::Error);
  EXPECT_FALSE(Fallbacks().contains("aten::mm"));
}

TEST_F(CpuFallbackTest, AResultThatIsNoTensorIsComputedAtOnce) {
  const at::Tensor x = Upload(Iota({4}));
  EXPECT_TRUE(x.mul(2).equal(x.add(x)));
  EXPECT_FALSE(x.equal(x.add(x)));
}

TEST_F(CpuFallbackTest, WhatAKernelWritesIsWrittenBack) {
  const at::Tensor x = Upload(Iota({4})), out = Upload(Iota({0}, at::kLong));
  EXPECT_TRUE(CallOp("nonzero", "out", {x, out})[0].toTensor().is_same(out));
  ExpectEqual(out, Indices({1, 2, 3}).view({3, 1}));
}

// Its meta kernel is written in Python.
TEST_F(CpuFallbackTest, AnOpMayUpdateSeveralArgumentsBesideItsResults) {
  const auto run = [](const at::Tensor& x, const at::Tensor& mean, const at::Tensor& variance) {
    return CallOp("_native_batch_norm_legit", "",
                  {x, c10::IValue(), c10::IValue(), mean, variance, true, 0.1, 1e-5});
  };
  const at::Tensor mean = Iota({3}), variance = Iota({3}).add(1);
  const at::Tensor mean_on_jax = Upload(mean), variance_on_jax = Upload(variance);
  const auto expected = run(Iota({4, 3}), mean, variance);
  const auto results = run(Upload(Iota({4, 3})), mean_on_jax, variance_on_jax);
  ASSERT_EQ(results.size(), 3u);
  for (size_t i = 0; i < 3; ++i) ExpectEqual(results[i].toTensor(), expected[i].toTensor());
  ExpectEqual(mean_on_jax, mean);
  ExpectEqual(variance_on_jax, variance);
}

TEST_F(CpuFallbackTest, CountsAreResetTogether) {
  CountFallback("aten::nonzero");
  CountFallback("aten::nonzero");
  EXPECT_EQ(Fallbacks().at("aten::nonzero"), 2u);
  ResetFallbacks();
  EXPECT_TRUE(Fallbacks().empty());
}

}  // namespace
}  // namespace torch_xla_lite::record
