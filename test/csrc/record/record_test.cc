#include "torch_xla_lite/csrc/record/record.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <optional>
#include <tuple>
#include <vector>

#include "test/csrc/record/recorder_test_base.h"
#include "torch_xla_lite/csrc/record/transfer.h"

namespace torch_xla_lite::record {
namespace {

using RecordTest = RecorderTest;

TEST_F(RecordTest, AnOpMayWriteToSeveralArguments) {
  const at::Tensor values = Upload(Iota({2})), indices = Upload(Iota({2}, at::kLong));
  CallOp("max", "dim_max", {Upload(Iota({2, 3})), 1, false, values, indices});
  EXPECT_EQ(runtime.counters().recorded_ops, 1u);
  ExpectEqual(values, Iota({2, 3}).select(1, 2).contiguous());
  ExpectEqual(indices, Indices({2, 2}));
}

using ThreeTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// Like the hook that `import torch` installs, which is written in Python.
ThreeTensors BatchNormMeta(const at::Tensor& input, const std::optional<at::Tensor>&,
                           const std::optional<at::Tensor>&, at::Tensor& mean, at::Tensor&, bool,
                           double, double) {
  const auto empty = [](const at::Tensor& like) {
    return at::Tensor(at::detail::empty_meta(like.sizes(), like.scalar_type()));
  };
  return {empty(input), empty(mean), empty(mean)};
}

TEST_F(RecordTest, WrittenArgumentsGetTheResultsBehindTheNewOnes) {
  torch::Library meta(torch::Library::IMPL, "aten", c10::DispatchKey::Meta, __FILE__, __LINE__);
  meta.impl("_native_batch_norm_legit", BatchNormMeta);
  const at::Tensor mean = Upload(Iota({3})), variance = Upload(Iota({3}));
  const auto results =
      CallOp("_native_batch_norm_legit", "",
             {Upload(Iota({4, 3})), c10::IValue(), c10::IValue(), mean, variance, true, 1.0, 1e-5});
  EXPECT_EQ(runtime.counters().recorded_ops, 1u);
  ExpectEqual(mean, Iota({3}).add(4.5));
  ExpectEqual(variance, Iota({3}).zero_().add(15));
  EXPECT_EQ(results[0].toTensor().sizes(), at::IntArrayRef({4, 3}));
  ExpectEqual(results[1].toTensor(), Iota({3}).add(4.5));
}

}  // namespace
}  // namespace torch_xla_lite::record
