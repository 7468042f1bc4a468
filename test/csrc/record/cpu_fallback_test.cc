#include "torch_xla_lite/csrc/record/cpu_fallback.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "test/csrc/record/recorder_test_base.h"
#include "torch_xla_lite/csrc/record/transfer.h"

namespace torch_xla_lite::record {
namespace {

using CpuFallbackTest = RecorderTest;

TEST_F(CpuFallbackTest, WhatAKernelWritesIsWrittenBack) {
  const at::Tensor x = Upload(Iota({4})), out = Upload(Iota({0}, at::kLong));
  EXPECT_TRUE(CallOp("nonzero", "out", {x, out})[0].toTensor().is_same(out));
  ExpectEqual(out, Indices({1, 2, 3}).view({3, 1}));
}

}  // namespace
}  // namespace torch_xla_lite::record
