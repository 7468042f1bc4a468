#include "torch_xla_lite/csrc/tensor/view_step.h"

#include <c10/util/SmallVector.h>

#include <algorithm>
#include <array>
#include <utility>

namespace torch_xla_lite::tensor {
namespace {

c10::SmallVector<const ViewStep*, 8> FromBase(const ViewStep* last) {
  c10::SmallVector<const ViewStep*, 8> steps;
  for (; last != nullptr; last = last->previous.get()) steps.push_back(last);
  std::reverse(steps.begin(), steps.end());
  return steps;
}

ir::Value Apply(const ViewStep& step, ir::Value operand) {
  std::array<ir::Value, 1> operands{std::move(operand)};
  return {ir::Node::Create(step.signature.get(), operands, step.scalars), step.output};
}

}  // namespace

ViewStep::~ViewStep() {
  auto step = std::move(previous);
  while (step != nullptr && step.use_count() == 1) {
    auto next = std::move(step->previous);
    step = std::move(next);
  }
}

c10::intrusive_ptr<ViewStep> Concatenate(c10::intrusive_ptr<ViewStep> first, const ViewStep* last) {
  for (const ViewStep* step : FromBase(last)) {
    first = c10::make_intrusive<ViewStep>(std::move(first), step->signature.get(), step->output,
                                          step->scalars);
  }
  return first;
}

bool IsConjugated(const ViewStep* last) {
  for (; last != nullptr; last = last->previous.get()) {
    if (last->signature->op == "aten::_conj" || last->signature->op == "aten::_neg_view")
      return true;
  }
  return false;
}

ir::Value ReadThrough(const ViewStep* last, ir::Value base) {
  ir::Value value = std::move(base);
  for (const ViewStep* step : FromBase(last)) value = Apply(*step, std::move(value));
  return value;
}

ir::Value WriteThrough(const ViewStep* last, ir::Value base, ir::Value value) {
  const auto steps = FromBase(last);
  // The operand of each step. The result of the last step is replaced, so it is not computed.
  c10::SmallVector<ir::Value, 8> operands{std::move(base)};
  for (size_t i = 0; i + 1 < steps.size(); ++i) operands.push_back(Apply(*steps[i], operands[i]));
  for (size_t i = steps.size(); i-- > 0;) {
    const ViewStep& step = *steps[i];
    const ir::Signature* write = step.signature->WriteSignature(step.output, operands[i].shape());
    std::array<ir::Value, 2> pair{std::move(operands[i]), std::move(value)};
    value = {ir::Node::Create(write, pair, step.scalars), 0};
  }
  return value;
}

}  // namespace torch_xla_lite::tensor
