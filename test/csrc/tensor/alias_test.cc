#include "torch_xla_lite/csrc/tensor/alias.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <mutex>
#include <utility>

#include "test/csrc/ir/toy_ops.h"
#include "test/csrc/tensor/toy_views.h"
#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/ir/record_lock.h"
#include "torch_xla_lite/csrc/runtime/live_values.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"

namespace torch_xla_lite::tensor {
namespace {

using ir::toy::Call;
using ir::toy::Leaf;
using ir::toy::Vector;

size_t NumPending() {
  const runtime::RecordScope scope;
  return runtime::PendingValues().size();
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

TEST(Alias, AValueOfAnotherShapeIsRefused) {
  const auto alias = c10::make_intrusive<Alias>(Vector(2));
  EXPECT_THROW(alias->SetValue(Leaf({1})), c10::Error);
}

TEST(Alias, AViewFromBeforeItGrewLeadsThroughTheOldBase) {
  const auto alias = c10::make_intrusive<Alias>(Vector(2));
  alias->SetValue(Leaf({1, 2}));
  const auto step = [](const char* op, size_t size) {
    return c10::make_intrusive<ViewStep>(nullptr, ViewSignature(op, size), 0, ViewStep::Scalars());
  };
  const auto view = step("reversed", 2);
  alias->Grow(Leaf({1, 2, 0, 0}), step("halves", 4));
  EXPECT_EQ(alias->shape(), Vector(4));
  EXPECT_EQ(alias->nbytes(), 32u);
  const auto steps = alias->StepsFromNow(view, /*growths=*/0);
  EXPECT_EQ(steps->signature->op, "reversed");
  EXPECT_EQ(steps->previous->signature->op, "halves");
  EXPECT_EQ(alias->StepsFromNow(view, /*growths=*/1), view);
}

TEST(Alias, APendingValueLivesUntilItsAliasDies) {
  auto alias = c10::make_intrusive<Alias>(Vector(1));
  alias->SetValue(Call("plus", {Leaf({1})}, {1}));
  EXPECT_EQ(NumPending(), 1u);
  alias.reset();
  EXPECT_EQ(NumPending(), 0u);
}

// Another thread takes the record lock when this is freed.
class FreedBuffer final : public ir::Buffer {
 public:
  explicit FreedBuffer(std::future<void>* taken) : taken_(*taken) {}
  ~FreedBuffer() override {
    taken_ = std::async(std::launch::async, [] { const std::lock_guard lock(ir::record_lock); });
    EXPECT_EQ(taken_.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  }
  bool IsExclusive() const override { return true; }

 private:
  std::future<void>& taken_;
};

TEST(Alias, FreesItsValueWithoutTheRecordLock) {
  std::future<void> taken;
  auto alias = c10::make_intrusive<Alias>(Vector(1));
  auto buffer = ir::Ref<ir::Buffer>::Take(new FreedBuffer(&taken));
  alias->SetValue({ir::Node::Leaf(Vector(1), std::move(buffer)), 0});
  alias.reset();
  EXPECT_TRUE(taken.valid());
}

}  // namespace
}  // namespace torch_xla_lite::tensor
