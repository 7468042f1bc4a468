#include "torch_xla_lite/csrc/tensor/alias.h"

#include <gtest/gtest.h>

#include <mutex>
#include <utility>

#include "test/csrc/ir/toy_ops.h"
#include "torch_xla_lite/csrc/runtime/live_values.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"

namespace torch_xla_lite::tensor {
namespace {

using ir::toy::Call;
using ir::toy::Leaf;
using ir::toy::Vector;

size_t NumPending() {
  const std::lock_guard lock(runtime::Runtime::Get().record_lock());
  return runtime::PendingValues().size();
}

TEST(Alias, IsAStorageOnJaxWithoutData) {
  const auto alias = c10::make_intrusive<Alias>(Vector(3));
  EXPECT_EQ(alias->device(), c10::Device(c10::DeviceType::PrivateUse1, 0));
  EXPECT_EQ(alias->nbytes(), 24u);
  EXPECT_EQ(alias->data(), nullptr);
}

TEST(Alias, EachWriteIsANewGeneration) {
  const auto alias = c10::make_intrusive<Alias>(Vector(1));
  const uint64_t before = alias->generation();
  alias->SetValue(Leaf({1}));
  alias->SetValue(Leaf({2}));
  EXPECT_EQ(alias->generation(), before + 2);
}

TEST(Alias, AWriteGivesBackWhatWasThere) {
  const auto alias = c10::make_intrusive<Alias>(Vector(1));
  const ir::Value first = Leaf({1});
  alias->SetValue(first);
  EXPECT_EQ(alias->SetValue(Leaf({2})).node, first.node);
}

TEST(Alias, AValueOfAnotherShapeChangesItsSize) {
  const auto alias = c10::make_intrusive<Alias>(Vector(1));
  alias->SetValue(Leaf({1, 2}));
  EXPECT_EQ(alias->shape(), Vector(2));
  EXPECT_EQ(alias->nbytes(), 16u);
}

TEST(Alias, APendingValueLivesUntilItsAliasDies) {
  auto alias = c10::make_intrusive<Alias>(Vector(1));
  alias->SetValue(Call("plus", {Leaf({1})}, {1}));
  EXPECT_EQ(NumPending(), 1u);
  alias.reset();
  EXPECT_EQ(NumPending(), 0u);
}

}  // namespace
}  // namespace torch_xla_lite::tensor
