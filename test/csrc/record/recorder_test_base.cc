#include "test/csrc/record/recorder_test_base.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>

#include "torch_xla_lite/csrc/kernels_of_torch/register.h"
#include "torch_xla_lite/csrc/record/cpu_fallback.h"
#include "torch_xla_lite/csrc/record/record.h"

namespace torch_xla_lite::record {

at::Tensor Iota(std::vector<int64_t> sizes, c10::ScalarType dtype) {
  at::Tensor tensor(at::detail::empty_cpu(sizes, at::kFloat));
  float value = 0;
  for (int64_t i = 0; i < tensor.numel(); ++i) tensor.mutable_data_ptr<float>()[i] = value++;
  return tensor.to(dtype);
}

std::vector<double> Values(const at::Tensor& cpu_tensor) {
  const at::Tensor dense = cpu_tensor.to(at::kDouble).contiguous();
  const auto* data = dense.const_data_ptr<double>();
  return {data, data + dense.numel()};
}

at::Tensor Indices(std::vector<int64_t> values) {
  at::Tensor tensor(at::detail::empty_cpu({static_cast<int64_t>(values.size())}, at::kLong));
  std::ranges::copy(values, tensor.mutable_data_ptr<int64_t>());
  return tensor;
}

std::vector<c10::IValue> CallOp(const std::string& name, const std::string& overload,
                                std::vector<c10::IValue> arguments) {
  c10::Dispatcher::singleton()
      .findSchemaOrThrow(("aten::" + name).c_str(), overload.c_str())
      .callBoxed(&arguments);
  return arguments;
}

void RecorderTest::SetUpTestSuite() {
  static const bool registered = [] {
    kernels_of_torch::RegisterKernels();
    return true;
  }();
  ASSERT_TRUE(registered);
}

RecorderTest::RecorderTest() {
  runtime.SetExecutor(&executor);
  runtime.ClearCache();
  runtime.counters().compiles = 0;
  runtime.counters().executions = 0;
  runtime.counters().recorded_ops = 0;
  ResetFallbacks();
}

void RecorderTest::ExpectEqual(const at::Tensor& on_jax, const at::Tensor& expected) {
  ASSERT_TRUE(on_jax.device().is_privateuseone());
  EXPECT_EQ(on_jax.scalar_type(), expected.scalar_type());
  EXPECT_EQ(on_jax.sizes(), expected.sizes());
  EXPECT_EQ(on_jax.strides(), expected.strides());
  EXPECT_EQ(on_jax.storage_offset(), expected.storage_offset());
  EXPECT_EQ(Values(Download(on_jax)), Values(expected));
}

}  // namespace torch_xla_lite::record
