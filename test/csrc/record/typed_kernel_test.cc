#include "torch_xla_lite/csrc/record/typed_kernel.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <stdexcept>

#include "test/csrc/record/recorder_test_base.h"
#include "torch_xla_lite/csrc/record/transfer.h"

namespace torch_xla_lite::record {
namespace {

using TypedKernelTest = RecorderTest;

c10::OperatorHandle Find(const char* name, const char* overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
}

TEST_F(TypedKernelTest, ARecordedCallLeavesTheReferencesToItsArguments) {
  const at::Tensor x = Upload(Iota({2, 3}));
  const at::Tensor y = Upload(Iota({2, 3}));
  ExpectEqual(x.add(y).view({3, 2}), Iota({2, 3}).mul(2).view({3, 2}));
  ExpectEqual(x.sum({0}, true), Iota({2, 3}).sum({0}, true));
  x.mul_(y);
  EXPECT_EQ(x.use_count(), 1u);
  EXPECT_EQ(y.use_count(), 1u);
}

TEST_F(TypedKernelTest, ACallThatRunsOnTheCpuLeavesTheReferencesToItsArguments) {
  const at::Tensor x = Upload(Iota({2, 3}, at::kByte));
  // uint8 does not hold alpha, so torch's kernel raises.
  EXPECT_THROW(x.add(x, 300), std::runtime_error);
  EXPECT_EQ(x.use_count(), 1u);
}

TEST_F(TypedKernelTest, ACallThatFailsLeavesTheReferencesToItsArguments) {
  const at::Tensor x = Upload(Iota({2, 3}));
  const at::Tensor on_cpu = Iota({2, 3});
  EXPECT_THROW(x.add(on_cpu), c10::Error);
  EXPECT_THROW(x.mm(x), c10::Error);
  EXPECT_THROW(x.view({4, 2}), c10::Error);
  EXPECT_EQ(x.use_count(), 1u);
  EXPECT_EQ(on_cpu.use_count(), 1u);
}

TEST_F(TypedKernelTest, AnOpWithOtherTypesThanInTheTableIsLeftToTheBoxedKernel) {
  torch::Library backend(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__,
                         __LINE__);
  torch::Library autograd(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradPrivateUse1,
                          __FILE__, __LINE__);
  // As if torch had changed the types of add.
  EXPECT_FALSE(
      RegisterTypedKernels(Find("aten::mul", "Tensor"), "aten::add.Tensor", &backend, &autograd));
  EXPECT_FALSE(
      RegisterTypedKernels(Find("aten::std", "dim"), "aten::std.dim", &backend, &autograd));
}

}  // namespace
}  // namespace torch_xla_lite::record
