// Random ops whose numbers only XLA computes to the last bit, such as normal and gamma numbers.
//
//   PaddedDraws draws(run_lowering);
//   auto results = draws.Run(call, operands);      // nothing: an op of another kind
//
// Each of their numbers depends on its index, and on the elements of the operands there, alone. So
// the first of many numbers are those of a smaller call. The lowering runs for a power of two of
// them, and few programs serve all shapes.

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_PADDED_DRAWS_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_PADDED_DRAWS_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/ir/ref.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/ir/signature.h"

namespace torch_xla_lite::interpreter {

// Runs the lowering of a call. The operands are dense. Gives a tensor for each output, undefined
// where the signature has none.
using RunLowering = std::function<std::vector<at::Tensor>(const ir::Node& call,
                                                          std::span<const at::Tensor> operands)>;

class PaddedDraws {
 public:
  explicit PaddedDraws(RunLowering run_lowering) : run_lowering_(std::move(run_lowering)) {}

  // Whether it runs an op.
  static bool Has(std::string_view op);
  // A tensor for each output. The operands broadcast to the shape of the outputs.
  std::optional<std::vector<at::Tensor>> Run(const ir::Node& call,
                                             std::span<const at::Tensor> operands);

 private:
  // Runs a call of `operands`, which are longer, and takes the results of `call` out of its own.
  std::vector<at::Tensor> RunPadded(const ir::Node& call, std::string_view op,
                                    std::vector<uint64_t> words,
                                    std::span<const ir::Ref<const ir::Shape>> shapes,
                                    std::span<const at::Tensor> operands);

  const RunLowering run_lowering_;
  // Of the larger calls.
  ir::SignatureTable signatures_;
};

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_PADDED_DRAWS_H_
