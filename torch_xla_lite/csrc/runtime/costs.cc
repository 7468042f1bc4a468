#include "torch_xla_lite/csrc/runtime/costs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/ir/key.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/ir/signature.h"

namespace torch_xla_lite::runtime {
namespace {

double NumElements(const ir::Shape* shape) {
  return shape == nullptr ? 0 : static_cast<double>(shape->NumElements());
}

// The leading dimensions that are the same for all.
double Batch(std::span<const ir::Shape* const> shapes) {
  double batch = 1;
  for (size_t dim = 0;; ++dim) {
    for (const ir::Shape* shape : shapes) {
      // The last two are those of a matrix.
      if (shape->dims().size() < dim + 3) return batch;
      if (shape->dims()[dim] != shapes[0]->dims()[dim]) return batch;
    }
    batch *= static_cast<double>(shapes[0]->dims()[dim]);
  }
}

// Of matrices [m, k], [k, n] and [m, n], whichever of them is the result, the product of the sizes
// is (m k n)^2. It also tells the size of a convolution, but for the size of its window.
double Products(const ir::Description& graph, const ir::Step& step) {
  std::vector<const ir::Shape*> matrices;
  const auto add = [&](const ir::Shape* shape) {
    if (shape != nullptr && shape->dims().size() >= 2) matrices.push_back(shape);
  };
  for (const ir::Position operand : step.operands) add(ir::ShapeAt(graph, operand));
  if (matrices.size() < 2) return 0;
  if (matrices.size() == 2) add(step.signature->outputs[0]);
  if (matrices.size() < 3) return 0;
  std::ranges::partial_sort(matrices, matrices.begin() + 3, std::greater<>(), NumElements);
  matrices.resize(3);
  double squared = 1;
  for (const ir::Shape* matrix : matrices) squared *= NumElements(matrix);
  return std::sqrt(squared / Batch(matrices));
}

}  // namespace

CallSize SizeOf(const ir::Description& graph, const ir::Step& step) {
  if (step.kind == ir::StepKind::kWrite) {
    return {.calls = 1,
            .operands = NumElements(ir::ShapeAt(graph, step.operands[1])),
            .results = 0,
            .products = 0};
  }
  CallSize size{.calls = 0, .operands = 0, .results = 0, .products = Products(graph, step)};
  for (const ir::Position operand : step.operands) {
    size.operands += NumElements(ir::ShapeAt(graph, operand));
  }
  for (const ir::Shape* output : step.signature->outputs) {
    if (output != nullptr) ++size.calls;
    size.results += NumElements(output);
  }
  return size;
}

void CostModel::Set(std::unordered_map<std::string, OpCosts> ops, const GraphCosts& graph) {
  ops_ = std::move(ops);
  graph_ = graph;
}

Costs CostModel::Of(const ir::Description& graph) const {
  double arguments = static_cast<double>(graph.roots.size());
  Costs costs{.compilation = graph_.compilation};
  for (const ir::Step& step : graph.steps) {
    if (step.kind == ir::StepKind::kLeaf) {
      ++arguments;
      continue;
    }
    const CallSize size = SizeOf(graph, step);
    const OpCosts& op = CostsOf(step);
    costs.interpretation += op.interpretation.Of(size);
    costs.execution += op.execution.Of(size);
    costs.compilation += op.compilation * size.calls;
  }
  costs.compilation += arguments * graph_.argument_compilation;
  costs.load = graph_.load + costs.compilation * graph_.load_part;
  costs.execution += graph_.execution + arguments * graph_.argument_execution;
  return costs;
}

double CostModel::InterpretationOf(const ir::Description& graph, const ir::Step& step) const {
  return CostsOf(step).interpretation.Of(SizeOf(graph, step));
}

const OpCosts& CostModel::CostsOf(const ir::Step& step) const {
  static constexpr OpCosts kNothing;
  auto found = ops_.find(step.kind == ir::StepKind::kWrite ? kWrite : step.signature->op);
  if (found == ops_.end()) found = ops_.find(kOther);
  return found == ops_.end() ? kNothing : found->second;
}

}  // namespace torch_xla_lite::runtime
