// Describes a graph to the compiler (compiler.py).

#ifndef TORCH_XLA_LITE_CSRC_PYTHON_DESCRIPTION_H_
#define TORCH_XLA_LITE_CSRC_PYTHON_DESCRIPTION_H_

#include <pybind11/pybind11.h>

#include <cstdint>
#include <span>
#include <utility>

#include "torch_xla_lite/csrc/ir/graph.h"

namespace torch_xla_lite::python {

// Steps and roots of a graph, as `compile` gets them.
using Description = std::pair<pybind11::list, pybind11::list>;

Description DescribeGraph(const ir::Graph& graph);

// The same of a key. sources: one for each step.
Description DescribeKey(std::span<const uint64_t> key, std::span<const uint32_t> sources);

// A function that describes a graph when it is asked, also when the nodes no longer exist.
pybind11::cpp_function Describer(const ir::Graph& graph);

}  // namespace torch_xla_lite::python

#endif  // TORCH_XLA_LITE_CSRC_PYTHON_DESCRIPTION_H_
