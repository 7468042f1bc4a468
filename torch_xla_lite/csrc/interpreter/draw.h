// Random ops computed from random bits by exact arithmetic, and by this project's kernels.
//
// They give bit for bit the numbers of their lowerings (lowering/random.py), without a compilation:
// what is rounded is computed by the same kernels.
//
//   if (const Draw* draw = FindDraw(facts.draw, shape)) results = draw(arguments, key, *shape);

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_DRAW_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_DRAW_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <string_view>
#include <vector>

#include "torch_xla_lite/csrc/kernels/threefry.h"

namespace torch_xla_lite::ir {
class Shape;
}

namespace torch_xla_lite::interpreter {

// Gives the results of a call, in any dtypes that convert to those of the op. `out` is the shape of
// the first one.
using Draw = std::vector<at::Tensor> (*)(const torch::jit::Stack& arguments,
                                         const kernels::Threefry& key, const ir::Shape& out);

// By the fact `draw` of an op. Nothing if the op, or the op with such a result, needs its lowering.
Draw FindDraw(std::string_view name, const ir::Shape* out);

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_DRAW_H_
