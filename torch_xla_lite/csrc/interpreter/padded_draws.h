// Random ops whose numbers only XLA computes to the last bit, such as normal numbers.
//
//   PaddedDraws draws(run_lowering);
//   std::optional<at::Tensor> drawn = draws.Run(call);      // nothing: an op of another kind
//
// Each of their numbers depends on its index alone, so the first of many numbers are those of a
// smaller call. The lowering runs for a power of two of them, and few programs serve all shapes.

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_PADDED_DRAWS_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_PADDED_DRAWS_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/ir/signature.h"

namespace torch_xla_lite::interpreter {

// Runs the lowering of a call. The operands are dense. Gives a tensor for each output, undefined
// where the signature has none.
using RunLowering = std::function<std::vector<at::Tensor>(const ir::Node& call,
                                                          std::span<const at::Tensor> operands)>;

class PaddedDraws {
 public:
  explicit PaddedDraws(RunLowering run_lowering) : run_lowering_(std::move(run_lowering)) {}

  std::optional<at::Tensor> Run(const ir::Node& call);

 private:
  const RunLowering run_lowering_;
  // Of the larger calls.
  ir::SignatureTable signatures_;
};

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_PADDED_DRAWS_H_
