#include "torch_xla_lite/csrc/kernels_of_torch/explicit_kernels.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "test/csrc/record/recorder_test_base.h"
#include "torch_xla_lite/csrc/record/transfer.h"

namespace torch_xla_lite::kernels_of_torch {
namespace {

using record::CallOp;
using record::Iota;
using record::Values;
using ExplicitKernelsTest = record::RecorderTest;

TEST(ExplicitKernels, AreNamedAsTorchNamesThem) {
  for (const ExplicitKernel& kernel : ExplicitKernels()) {
    const std::string name = kernel.name;
    const size_t dot = std::min(name.find('.'), name.size());
    const std::string overload = name.substr(std::min(dot + 1, name.size()));
    EXPECT_TRUE(c10::Dispatcher::singleton()
                    .findSchema({"aten::" + name.substr(0, dot), overload})
                    .has_value())
        << name;
  }
}

TEST_F(ExplicitKernelsTest, ACloneIsApartAndADetachedTensorIsNot) {
  const at::Tensor x = record::Upload(Iota({2}));
  const at::Tensor copy = x.clone(), shared = x.detach();
  x.add_(1);
  ExpectEqual(copy, Iota({2}));
  ExpectEqual(shared, Iota({2}).add(1));
}

TEST_F(ExplicitKernelsTest, ResizingKeepsTheElementsThatFit) {
  const at::Tensor x = record::Upload(Iota({4}));
  x.resize_({2, 3});
  const at::Tensor expected = Iota({2, 3});
  expected.select(0, 1).slice(0, 1).zero_();
  ExpectEqual(x, expected);
}

TEST_F(ExplicitKernelsTest, StridesAreThoseOfTheMemoryAndNotOfTheView) {
  ExpectSame(Iota({3, 4}), [](const at::Tensor& x) {
    return x.t().slice(0, 1).as_strided({2, 2}, {4, 1}, 5).add_(100);
  });
}

TEST_F(ExplicitKernelsTest, CopyingConvertsAndBroadcasts) {
  const at::Tensor x = record::Upload(Iota({2, 3}));
  x.copy_(Iota({3}, at::kLong));
  ExpectEqual(x, Iota({3}).expand({2, 3}).contiguous());
  const at::Tensor on_cpu = Iota({2, 3}, at::kDouble);
  on_cpu.copy_(x.add(1));
  EXPECT_TRUE(on_cpu.equal(Iota({3}, at::kDouble).expand({2, 3}).add(1)));
}

TEST_F(ExplicitKernelsTest, ANumberIsReadFromATensor) {
  EXPECT_EQ(record::Upload(Iota({3})).select(0, 2).mul(2).item().toDouble(), 4);
}

TEST_F(ExplicitKernelsTest, ConvertingIsRecordedAndLeavingIsNot) {
  const at::Tensor x = record::Upload(Iota({3}));
  ExpectEqual(x.to(at::kLong), Iota({3}, at::kLong));
  const at::Tensor on_cpu = x.to(at::Device(at::kCPU), at::kDouble);
  EXPECT_TRUE(on_cpu.equal(Iota({3}, at::kDouble)));
}

TEST_F(ExplicitKernelsTest, AResizedViewGoesOnInTheMemoryOfItsBase) {
  ExpectSame(Iota({2, 3}), [](const at::Tensor& x) { return x.select(0, 0).resize_({5}).add_(1); });
}

TEST_F(ExplicitKernelsTest, SettingATensorSharesTheMemoryOfTheOther) {
  const at::Tensor x = record::Upload(Iota({2})), y = record::Upload(Iota({2, 3}));
  x.set_(y);
  x.add_(1);
  ExpectEqual(x, Iota({2, 3}).add(1));
  ExpectEqual(y, Iota({2, 3}).add(1));
}

TEST_F(ExplicitKernelsTest, SettingAStorageGivesAnotherViewOfIt) {
  const at::Tensor x = record::Upload(Iota({1})), y = record::Upload(Iota({2, 3}));
  x.set_(y.storage(), 1, {2}, {3});
  x.add_(10);
  const at::Tensor expected = Iota({2, 3});
  expected.select(1, 1).add_(10);
  ExpectEqual(y, expected);
}

TEST_F(ExplicitKernelsTest, BatchNormUpdatesItsStatisticsInTraining) {
  const at::Tensor mean = record::Upload(Iota({3})), variance = record::Upload(Iota({3}));
  CallOp("native_batch_norm", "",
         {record::Upload(Iota({4, 3})), c10::IValue(), c10::IValue(), mean, variance, true, 1.0,
          1e-5});
  EXPECT_EQ(Values(record::Download(mean)), (std::vector<double>{4.5, 5.5, 6.5}));
  EXPECT_EQ(Values(record::Download(variance)), (std::vector<double>{15, 15, 15}));
}

}  // namespace
}  // namespace torch_xla_lite::kernels_of_torch
