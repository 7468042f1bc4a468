#include "torch_xla_lite/csrc/interpreter/completion.h"

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "torch_xla_lite/csrc/ops/named.h"

namespace torch_xla_lite::interpreter {
namespace {

using torch::jit::Stack;

constexpr int64_t kMax = 2;  // of the modes: sum, mean, max

// The bag of each index.
at::Tensor BagsOf(const at::Tensor& indices, const at::Tensor& offsets, int64_t bags) {
  const int64_t count = indices.numel();
  at::Tensor starts = indices.new_zeros({count + 1});
  const at::Tensor firsts = offsets.narrow(0, 0, bags);
  starts.index_add_(0, firsts, indices.new_ones({bags}));
  return starts.cumsum(0).narrow(0, 0, count).sub(1).to(indices.scalar_type());
}

// (weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
//  include_last_offset, padding_idx) -> (result, offset2bag, bag_size, maximum_indices)
void CompleteEmbeddingBag(const Stack& arguments, Stack* results) {
  const at::Tensor &indices = arguments[1].toTensor(), &offsets = arguments[2].toTensor();
  const int64_t bags = (*results)[0].toTensor().size(0), padding = arguments[8].toInt();
  at::Tensor bag = (*results)[1].toTensor();
  if (bag.numel() != indices.numel()) bag = BagsOf(indices, offsets, bags);
  at::Tensor counted = indices.new_ones(indices.sizes());
  if (padding >= 0) counted = indices.ne(padding).to(indices.scalar_type());
  (*results)[1] = bag;
  (*results)[2] = indices.new_zeros({offsets.numel()}).index_add_(0, bag, counted);
  if (arguments[4].toInt() != kMax) (*results)[3] = indices.new_empty({0});
}

// (log_probs, targets, ..) -> (loss, log_alpha): states up to those of the longest target.
void CompleteCtcLoss(const Stack& arguments, Stack* results) {
  const at::Tensor log_alpha = (*results)[1].toTensor();
  const int64_t states = 2 * arguments[1].toTensor().size(-1) + 1, used = log_alpha.size(2);
  if (used >= states) return;
  constexpr double kImpossible = -std::numeric_limits<double>::infinity();
  const at::Tensor all =
      log_alpha.new_full({log_alpha.size(0), log_alpha.size(1), states}, kImpossible);
  all.narrow(2, 0, used).copy_(log_alpha);
  (*results)[1] = all;
}

// (grad_output, input, weight, ..) -> (gradients of input, weight and bias). An optimizer updates
// the weight with its gradient, element by element, so both have one layout, as in autograd.
void CompleteConvolutionBackward(const Stack& arguments, Stack* results) {
  const at::Tensor gradient = (*results)[1].toTensor();
  const bool has_layout = !gradient.defined() || !arguments[2].toTensor().is_contiguous();
  if (!has_layout) (*results)[1] = gradient.contiguous();
}

}  // namespace

Completion FindCompletion(std::string_view name) {
  static constexpr auto kCompletions = std::to_array<std::pair<std::string_view, Completion>>({
      {"convolution_backward", CompleteConvolutionBackward},
      {"ctc_loss", CompleteCtcLoss},
      {"embedding_bag", CompleteEmbeddingBag},
  });
  return ops::Named(kCompletions, name);
}

}  // namespace torch_xla_lite::interpreter
