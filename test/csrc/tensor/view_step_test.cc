#include "torch_xla_lite/csrc/tensor/view_step.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "test/csrc/ir/toy_ops.h"
#include "test/csrc/tensor/toy_views.h"
#include "torch_xla_lite/csrc/ir/graph.h"

namespace torch_xla_lite::tensor {
namespace {

using ir::toy::Data;
using ir::toy::Leaf;
using StepPtr = c10::intrusive_ptr<ViewStep>;

StepPtr Step(StepPtr previous, const std::string& op, size_t size,
             std::vector<uint64_t> scalars = {}, uint32_t output = 0) {
  return c10::make_intrusive<ViewStep>(std::move(previous), ViewSignature(op, size), output,
                                       std::move(scalars));
}

Data Evaluate(const ir::Value& value) {
  const std::array roots{ir::Root{&value}};
  const ir::Graph graph = ir::Linearize(roots);
  return ir::toy::Interpret(ir::Describe(graph.key), ir::toy::DataOf(graph.leaves),
                            graph.scalars)[0];
}

TEST(ReadThrough, AppliesTheStepsFromTheBaseOn) {
  const StepPtr back = Step(Step({}, "halves", 4, {}, 1), "reversed", 2);
  EXPECT_EQ(Evaluate(ReadThrough(back.get(), Leaf({1, 2, 3, 4}))), (Data{4, 3}));
}

TEST(ReadThrough, PassesScalarsOn) {
  const StepPtr third = Step({}, "element", 4, {2});
  EXPECT_EQ(Evaluate(ReadThrough(third.get(), Leaf({1, 2, 3, 4}))), Data{3});
}

TEST(ReadThrough, NoStepIsTheBaseItself) {
  const ir::Value base = Leaf({1});
  EXPECT_EQ(ReadThrough(nullptr, base).node, base.node);
}

TEST(WriteThrough, ReplacesThePartThatIsSeen) {
  const StepPtr third = Step({}, "element", 4, {2});
  const ir::Value base = WriteThrough(third.get(), Leaf({1, 2, 3, 4}), Leaf({9}));
  EXPECT_EQ(Evaluate(base), (Data{1, 2, 9, 4}));
}

TEST(WriteThrough, UndoesTheStepsFromTheLastOneOn) {
  const StepPtr element =
      Step(Step(Step({}, "reversed", 4), "halves", 4, {}, 1), "element", 2, {0});
  EXPECT_EQ(Evaluate(ReadThrough(element.get(), Leaf({1, 2, 3, 4}))), Data{2});
  const ir::Value base = WriteThrough(element.get(), Leaf({1, 2, 3, 4}), Leaf({9}));
  EXPECT_EQ(Evaluate(base), (Data{1, 9, 3, 4}));
}

TEST(WriteThrough, LeavesTheOldBaseAsItWas) {
  const StepPtr first = Step({}, "element", 2, {0});
  const ir::Value base = Leaf({1, 2});
  Evaluate(WriteThrough(first.get(), base, Leaf({9})));
  EXPECT_EQ(Evaluate(ReadThrough(first.get(), base)), Data{1});
}

TEST(WriteThrough, OneStepIsOneNode) {
  const StepPtr first = Step({}, "element", 2, {0});
  const ir::Value written = WriteThrough(first.get(), Leaf({1, 2}), Leaf({9}));
  for (const ir::Value& operand : written.node->operands()) EXPECT_NE(operand.buffer(), nullptr);
}

}  // namespace
}  // namespace torch_xla_lite::tensor
