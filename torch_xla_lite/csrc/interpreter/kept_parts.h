// The calls of ops with kept kernels (kept_kernel.h), of one result each, that a call consists of.
//
//   PartsOf("aten::_foreach_add.List", {[a, b], [c, d], 1}, {})
//   // aten::add.Tensor(a, c, 1) for output 0, aten::add.Tensor(b, d, 1) for output 1

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_KEPT_PARTS_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_KEPT_PARTS_H_

#include <ATen/core/stack.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "torch_xla_lite/csrc/ops/decode.h"

namespace torch_xla_lite::interpreter {

struct Part {
  // A runtime scalar of the call that is an argument of the part.
  struct Number {
    size_t argument;
    size_t scalar;
    bool is_tensor;
    bool wrapped;
  };

  std::string op;
  torch::jit::Stack arguments;
  std::vector<Number> numbers;
  size_t output = 0;       // Of the call.
  bool is_matrix = false;  // The result is one, of the rows of the output.
};

// `arguments` are those of the call, `numbers` the runtime scalars among them, in their order.
// Empty if that is not known of the call.
std::vector<Part> PartsOf(std::string_view op, const torch::jit::Stack& arguments,
                          std::span<const ops::CallPlan::RuntimeNumber> numbers);

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_KEPT_PARTS_H_
