#include "torch_xla_lite/csrc/interpreter/plan_maker.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "test/csrc/record/recorder_test_base.h"
#include "torch_xla_lite/csrc/interpreter/interpreter.h"
#include "torch_xla_lite/csrc/interpreter/kept_kernel.h"
#include "torch_xla_lite/csrc/interpreter/schedule.h"
#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/tensor/tensor_impl.h"

namespace torch_xla_lite::interpreter {
namespace {

using record::Iota;
using record::Upload;

class PlanMakerTest : public record::RecorderTest {
 protected:
  struct Planned {
    std::unique_ptr<Plan> plan;
    at::Tensor leaf;
    at::Tensor root;
  };

  // Runs what a function records by a plan, with its only leaf, which may be donated.
  static Planned Run(const std::function<at::Tensor(const at::Tensor&)>& function,
                     bool is_donated = true) {
    const at::Tensor result = function(Upload(Iota({3, 3})));
    const ir::Value value = tensor::XTensorImpl::From(result)->Read();
    const ir::Root root{&value};
    const ir::Graph graph = ir::Linearize({&root, 1});
    ir::Description description = ir::Describe(graph.key);
    description.steps.at(0).donated = is_donated;
    Interpreter interpreter(nullptr, nullptr);
    Planned planned{nullptr, Iota({3, 3}), {}};
    Trace trace;
    const at::Tensor wanted = interpreter.Run(graph, {{planned.leaf}}, &trace).at(0);
    planned.plan =
        MakePlan(description, trace, /*keeps=*/[](const ir::Signature&) { return true; });
    const std::vector<Plan::Leaf> leaves{{planned.leaf.mutable_data_ptr(), planned.leaf}};
    planned.root = interpreter.Run(*planned.plan, graph, leaves).at(0);
    EXPECT_TRUE(planned.root.equal(wanted));
    return planned;
  }
};

TEST_F(PlanMakerTest, AnUpdatedLeafStaysWhereItIs) {
  const Planned updated = Run([](const at::Tensor& x) { return x.mul(2).add(1).sqrt(); });
  EXPECT_TRUE(updated.plan->Overwrites(0));
  EXPECT_EQ(updated.root.const_data_ptr(), updated.leaf.const_data_ptr());
}

TEST_F(PlanMakerTest, ALeafThatIsNotDonatedKeepsItsValues) {
  const Planned kept = Run([](const at::Tensor& x) { return x.mul(2); }, /*is_donated=*/false);
  EXPECT_FALSE(kept.plan->Overwrites(0));
  EXPECT_TRUE(kept.leaf.equal(Iota({3, 3})));
}

TEST_F(PlanMakerTest, ALeafThatIsNeededInOtherPlacesOrLaterKeepsItsValues) {
  for (const auto& function : std::vector<std::function<at::Tensor(const at::Tensor&)>>{
           [](const at::Tensor& x) { return x.add(x.t()); },
           [](const at::Tensor& x) { return x.mul(x.select(0, 0)); },
           [](const at::Tensor& x) { return x.sqrt().mm(x); },
           [](const at::Tensor& x) { return x.gt(2); },
       }) {
    EXPECT_FALSE(Run(function).plan->Overwrites(0));
  }
}

TEST_F(PlanMakerTest, ARootHasItsMemoryForItself) {
  const Planned view = Run([](const at::Tensor& x) { return x.view({9}); }, /*is_donated=*/false);
  EXPECT_NE(view.root.const_data_ptr(), view.leaf.const_data_ptr());
}

TEST_F(PlanMakerTest, ALeafIsWrittenToWhereNothingCanFailAnyMore) {
  EXPECT_FALSE(Run([](const at::Tensor& x) { return x.mul(2).cumsum(0); }).plan->Overwrites(0));
  EXPECT_TRUE(Run([](const at::Tensor& x) { return x.mul(x.cumsum(0)); }).plan->Overwrites(0));
}

TEST_F(PlanMakerTest, StepsOnOneMemoryFollowEachOtherAsFarAsTheyMayMove) {
  const auto order = [](std::vector<Access> steps) { return Schedule(steps); };
  using Order = std::vector<uint32_t>;
  const Access a{{0}, {0}, true}, b{{1}, {1}, true}, fixed{{2}, {2}, false};
  EXPECT_EQ(order({a, b, a, b, a}), (Order{1, 3, 0, 2, 4}));
  EXPECT_EQ(order({a, b, fixed, a, b, a}), (Order{0, 1, 2, 4, 3, 5}));
  // What reads a memory stays before what overwrites it.
  const Access reads_a{{0}, {3}, true}, sums{{0, 3}, {4}, true};
  EXPECT_EQ(order({b, reads_a, a, b, sums}), (Order{0, 3, 1, 2, 4}));
}

TEST_F(PlanMakerTest, NothingIsWhereMemoriesAreThatHaveNoPlaceYet) {
  void* const nowhere = reinterpret_cast<void*>(Memory::kNowhere);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  EXPECT_EQ(mmap(nowhere, 4096, PROT_NONE, flags, -1, 0), MAP_FAILED);
}

TEST_F(PlanMakerTest, ChannelsMayBeLastInALoop) {
  const at::Tensor x = Iota({2, 3, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_NE(KeepKernel("aten::exp", {x}, x.exp()), nullptr);
}

}  // namespace
}  // namespace torch_xla_lite::interpreter
