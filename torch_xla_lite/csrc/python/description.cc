#include "torch_xla_lite/csrc/python/description.h"

#include <pybind11/stl.h>

#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/ir/key.h"
#include "torch_xla_lite/csrc/ir/placement.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/python/source.h"

namespace py = pybind11;

namespace torch_xla_lite::python {
namespace {

py::tuple ShapeTuple(const ir::Shape* shape) {
  py::tuple dims(shape->dims().size());
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = shape->dims()[i];
  return py::make_tuple(static_cast<int>(shape->dtype()), dims);
}

py::tuple PositionTuple(ir::Position position) {
  return py::make_tuple(position.step, position.output);
}

// (dtype, dims, donated, placement).
py::tuple LeafTuple(const ir::Step& step, ir::Placement placement) {
  return ShapeTuple(step.leaf) + py::make_tuple(step.donated, placement);
}

// (step, result, placement), where None is a placement that the compiler chooses.
py::tuple RootTuple(ir::Position position, ir::Placement placement) {
  const py::object chosen =
      placement == ir::kAnywhere ? py::none() : py::object(py::int_(placement));
  return PositionTuple(position) + py::make_tuple(chosen);
}

// (op, words, operands, outputs, number of scalars, source, result that is written or None).
py::tuple CallTuple(const ir::Step& step, uint32_t source) {
  py::list words;
  for (uint64_t word : step.signature->words) words.append(word);
  py::list operands;
  for (ir::Position operand : step.operands) operands.append(PositionTuple(operand));
  py::list outputs;
  for (const ir::Shape* output : step.signature->outputs) {
    outputs.append(output == nullptr ? py::none() : py::object(ShapeTuple(output)));
  }
  return py::make_tuple(step.signature->op, words, operands, outputs, step.num_scalars,
                        SourceText(source), step.signature->written);
}

std::vector<uint32_t> SourcesOf(const ir::Graph& graph) {
  std::vector<uint32_t> sources;
  for (const ir::Node* node : graph.nodes) sources.push_back(node->source);
  return sources;
}

Description Tuples(const ir::Description& description, std::span<const uint32_t> sources) {
  const bool is_on_mesh = !description.leaf_placements.empty();
  py::list steps;
  size_t leaf = 0;
  for (size_t i = 0; i < description.steps.size(); ++i) {
    const ir::Step& step = description.steps[i];
    if (step.kind != ir::StepKind::kLeaf) {
      steps.append(CallTuple(step, sources[i]));
    } else {
      steps.append(
          LeafTuple(step, is_on_mesh ? description.leaf_placements[leaf++] : ir::kOneDevice));
    }
  }
  py::list roots;
  for (size_t i = 0; i < description.roots.size(); ++i) {
    roots.append(RootTuple(description.roots[i],
                           is_on_mesh ? description.root_placements[i] : ir::kAnywhere));
  }
  return {steps, roots};
}

}  // namespace

Description DescribeKey(std::span<const uint64_t> key, std::span<const uint32_t> sources) {
  return Tuples(ir::Describe(key), sources);
}

py::cpp_function Describer(const ir::Graph& graph) {
  return {[key = ir::KeptKey(graph.key), sources = SourcesOf(graph)] {
    return DescribeKey(key.words(), sources);
  }};
}

Description DescribeGraph(const ir::Graph& graph) {
  return Tuples(graph.description(), SourcesOf(graph));
}

}  // namespace torch_xla_lite::python
