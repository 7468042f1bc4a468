#include "torch_xla_lite/csrc/dispatch/record.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_add_ops.h>
#include <ATen/ops/add_ops.h>
#include <gtest/gtest.h>

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "test/csrc/dispatch/aten_executor.h"
#include "torch_xla_lite/csrc/dispatch/cpu_fallback.h"
#include "torch_xla_lite/csrc/dispatch/register.h"
#include "torch_xla_lite/csrc/dispatch/transfer.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"
#include "torch_xla_lite/csrc/tensor/tensor_impl.h"

namespace torch_xla_lite::dispatch {
namespace {

using runtime::Runtime;
using tensor::XTensorImpl;

at::Tensor Iota(std::vector<int64_t> sizes, c10::ScalarType dtype = at::kFloat) {
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

// Calls an op that has no method.
std::vector<c10::IValue> CallOp(const std::string& name, const std::string& overload,
                                std::vector<c10::IValue> arguments) {
  c10::Dispatcher::singleton()
      .findSchemaOrThrow(("aten::" + name).c_str(), overload.c_str())
      .callBoxed(&arguments);
  return arguments;
}

class RecordTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    static const bool registered = [] {
      // Ops with runtime scalars and indices; all others are known to the executor too.
      SetLoweredOps({{"aten::add.Tensor", false},
                     {"aten::mul.Scalar", false},
                     {"aten::select.int", false},
                     {"aten::_foreach_add.Scalar", false}});
      RegisterKernels();
      return true;
    }();
    ASSERT_TRUE(registered);
  }

  RecordTest() {
    runtime.SetExecutor(&executor);
    runtime.ClearCache();
    runtime.counters().compiles = 0;
    runtime.counters().executions = 0;
    runtime.counters().recorded_ops = 0;
    ResetFallbacks();
  }

  static void ExpectEqual(const at::Tensor& on_jax, const at::Tensor& expected) {
    ASSERT_TRUE(on_jax.device().is_privateuseone());
    EXPECT_EQ(on_jax.sizes(), expected.sizes());
    EXPECT_EQ(on_jax.strides(), expected.strides());
    EXPECT_EQ(on_jax.storage_offset(), expected.storage_offset());
    EXPECT_EQ(on_jax.scalar_type(), expected.scalar_type());
    EXPECT_EQ(Values(Download(on_jax)), Values(expected));
  }

  // Applies a function to the same tensor on jax and on the CPU, and compares the tensor and the
  // result.
  template <typename Function>
  static void ExpectSame(const at::Tensor& cpu, Function function) {
    const at::Tensor on_cpu = cpu.clone();
    const at::Tensor on_jax = Upload(cpu);
    const at::Tensor expected = function(on_cpu);
    ExpectEqual(function(on_jax), expected);
    ExpectEqual(on_jax, on_cpu);
  }

  Runtime& runtime = Runtime::Get();
  AtenExecutor executor;
};

TEST_F(RecordTest, AnOpIsComputedWhenItsResultIsRead) {
  const at::Tensor x = Upload(Iota({2, 3}));
  const at::Tensor y = x.add(x).mul(x);
  EXPECT_EQ(runtime.counters().recorded_ops, 2u);
  EXPECT_EQ(runtime.counters().executions, 0u);
  ExpectEqual(y, Iota({2, 3}).add(Iota({2, 3})).mul(Iota({2, 3})));
  EXPECT_EQ(runtime.counters().executions, 1u);
}

TEST_F(RecordTest, AnInPlaceOpGivesItsTensorBack) {
  const at::Tensor x = Upload(Iota({2, 3}));
  EXPECT_TRUE(x.add_(x).is_same(x));
  ExpectEqual(x, Iota({2, 3}).mul(2));
}

TEST_F(RecordTest, AnOutOpWritesToItsArgumentAndResizesIt) {
  const at::Tensor x = Upload(Iota({2, 3}));
  at::Tensor out = Upload(Iota({0}));
  at::_ops::add_out::call(x, x, 1, out);
  ExpectEqual(out, Iota({2, 3}).mul(2));
}

TEST_F(RecordTest, ResultsKeepTheDtypeThatTorchPromises) {
  const at::Tensor x = Upload(Iota({3}, at::kLong));
  EXPECT_EQ(x.mul(0.5).scalar_type(), at::kFloat);
  ExpectEqual(x.mul(0.5), Iota({3}, at::kLong).mul(0.5));
}

TEST_F(RecordTest, ScalarsDoNotCompileAgain) {
  const at::Tensor x = Upload(Iota({3}));
  for (double factor : {0.5, 0.25, 0.125}) ExpectEqual(x.mul(factor), Iota({3}).mul(factor));
  EXPECT_EQ(runtime.counters().compiles, 1u);
}

TEST_F(RecordTest, IndicesDoNotCompileAgain) {
  const at::Tensor x = Upload(Iota({5, 3}));
  for (int64_t i : {1, 3, -1}) ExpectEqual(x.select(0, i), Iota({5, 3}).select(0, i));
  EXPECT_EQ(runtime.counters().compiles, 1u);
}

TEST_F(RecordTest, WritingThroughViewsReachesTheBase) {
  ExpectSame(Iota({3, 4}), [](const at::Tensor& x) { return x.t().select(0, 2).add_(10); });
  ExpectSame(Iota({3, 4}), [](const at::Tensor& x) { return x.slice(1, 1, 4, 2).mul_(10); });
  ExpectSame(Iota({3, 4}), [](const at::Tensor& x) {
    return x.view({2, 6}).select(1, -1).zero_();
  });
  ExpectSame(Iota({3, 3}), [](const at::Tensor& x) { return x.diagonal().fill_(7); });
}

TEST_F(RecordTest, EachResultOfAMultiViewCanBeWrittenTo) {
  ExpectSame(Iota({6}), [](const at::Tensor& x) {
    const auto parts = x.split(2);
    parts[1].add_(parts[0]);
    return parts[1];
  });
}

TEST_F(RecordTest, AViewOfItselfStaysTheSameTensor) {
  ExpectSame(Iota({2, 3}), [](const at::Tensor& x) {
    at::Tensor same = x;
    EXPECT_TRUE(same.t_().is_same(x));
    return x.select(0, 1).add_(1);
  });
}

TEST_F(RecordTest, AListOfTensorsIsWrittenInPlace) {
  const std::vector<at::Tensor> tensors{Upload(Iota({2})), Upload(Iota({3}))};
  at::_ops::_foreach_add__Scalar::call(tensors, 5);
  ExpectEqual(tensors[0], Iota({2}).add(5));
  ExpectEqual(tensors[1], Iota({3}).add(5));
}

TEST_F(RecordTest, AnOpMayUpdateSeveralArgumentsBesideItsResults) {
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

TEST_F(RecordTest, AnOpWhoseShapeDependsOnDataRunsOnTheCpu) {
  const at::Tensor x = Upload(Iota({4}));
  ExpectEqual(x.mul(2).nonzero(), Indices({1, 2, 3}).view({3, 1}));
  EXPECT_EQ(Fallbacks().at("aten::nonzero"), 1u);
}

TEST_F(RecordTest, AWrongCallRaisesWhatTheCpuKernelSays) {
  const at::Tensor x = Upload(Iota({2, 3}));
  try {
    x.mm(x);
    FAIL() << "must raise";
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    EXPECT_NE(text.find("mat1 and mat2 shapes cannot be multiplied"), std::string::npos) << text;
  }
}

TEST_F(RecordTest, WritingToARepeatedElementIsRefused) {
  const at::Tensor x = Upload(Iota({1}));
  EXPECT_THROW(x.expand({3}).add_(1), c10::Error);
}

TEST_F(RecordTest, IndicesMayLieOnTheCpu) {
  const at::Tensor x = Upload(Iota({4, 2}));
  const c10::List<std::optional<at::Tensor>> indices({Indices({3, 0})});
  ExpectEqual(x.index(indices), Iota({4, 2}).index(indices));
}

// It called itself without end.
TEST_F(RecordTest, ASingleIndexOnTheCpuIsRefused) {
  EXPECT_THROW(Upload(Iota({4, 2})).index_select(0, Indices({3})), c10::Error);
}

TEST_F(RecordTest, AnOperandOnTheCpuIsRefused) {
  EXPECT_THROW(Upload(Iota({2})).add(Iota({2})), c10::Error);
  EXPECT_THROW(Iota({2}).add_(Upload(Iota({2}))), c10::Error);
}

TEST_F(RecordTest, ACpuNumberIsNotRefused) {
  const at::Tensor number = Iota({2}).select(0, 1);
  ExpectEqual(Upload(Iota({2})).add(number), Iota({2}).add(number));
}

TEST_F(RecordTest, ACloneIsApartAndADetachedTensorIsNot) {
  const at::Tensor x = Upload(Iota({2}));
  const at::Tensor copy = x.clone(), shared = x.detach();
  x.add_(1);
  ExpectEqual(copy, Iota({2}));
  ExpectEqual(shared, Iota({2}).add(1));
}

TEST_F(RecordTest, ResizingKeepsTheElementsThatFit) {
  const at::Tensor x = Upload(Iota({4}));
  x.resize_({2, 3});
  const at::Tensor expected = Iota({2, 3});
  expected.select(0, 1).slice(0, 1).zero_();
  ExpectEqual(x, expected);
}

TEST_F(RecordTest, StridesAreThoseOfTheMemoryAndNotOfTheView) {
  ExpectSame(Iota({3, 4}), [](const at::Tensor& x) {
    return x.t().slice(0, 1).as_strided({2, 2}, {4, 1}, 5).add_(100);
  });
}

TEST_F(RecordTest, CopyingConvertsAndBroadcasts) {
  const at::Tensor x = Upload(Iota({2, 3}));
  x.copy_(Iota({3}, at::kLong));
  ExpectEqual(x, Iota({3}).expand({2, 3}).contiguous());
  const at::Tensor on_cpu = Iota({2, 3}, at::kDouble);
  on_cpu.copy_(x.add(1));
  EXPECT_TRUE(on_cpu.equal(Iota({3}, at::kDouble).expand({2, 3}).add(1)));
}

TEST_F(RecordTest, NodesRememberWhereTheyWereRecorded) {
  const at::Tensor x = Upload(Iota({2}));
  SetSourceHook([] { return uint32_t{17}; });
  const at::Tensor y = x.add(x);
  SetSourceHook(nullptr);
  const std::lock_guard lock(runtime.record_lock());
  EXPECT_EQ(XTensorImpl::From(y)->Read().node->source, 17u);
}

TEST_F(RecordTest, WritingThroughAViewInALoopCompilesOnce) {
  const at::Tensor x = Upload(Iota({2, 3}));
  const at::Tensor row = x.select(0, 1);
  for (int i = 0; i < 4; ++i) {
    row.mul_(0.5);
    runtime.Sync();
  }
  EXPECT_EQ(runtime.counters().compiles, 1u);
  const at::Tensor expected = Iota({2, 3});
  expected.select(0, 1).mul_(0.0625);
  ExpectEqual(x, expected);
}

}  // namespace
}  // namespace torch_xla_lite::dispatch
