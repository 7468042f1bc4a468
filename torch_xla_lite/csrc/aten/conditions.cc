#include "torch_xla_lite/csrc/aten/conditions.h"

#include <ATen/core/Tensor.h>
#include <c10/core/WrapDimMinimal.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "torch_xla_lite/csrc/ops/named.h"

namespace torch_xla_lite::aten {
namespace {

// The loss of no rows is memory that nothing has written to.
bool HasRows(const torch::jit::Stack& stack) { return stack[0].toTensor().numel() > 0; }

// Whether all elements are in [0, size).
bool AreIndices(const at::Tensor& tensor, int64_t size) {
  return tensor.ge(0).logical_and(tensor.lt(size)).all().item<bool>();
}

// Whether an int32 or int64 among the elements is the smallest one.
bool HasSmallest(const at::Tensor& tensor) {
  const c10::ScalarType dtype = tensor.scalar_type();
  if (dtype == at::kInt) return tensor.eq(std::numeric_limits<int32_t>::min()).any().item<bool>();
  return dtype == at::kLong && tensor.eq(std::numeric_limits<int64_t>::min()).any().item<bool>();
}

// (self, other, *, rounding_mode): the smallest integer divided by -1 ends the process.
bool HasQuotients(const torch::jit::Stack& stack) {
  const at::Tensor self = stack[0].toTensor();
  const bool is_truncated = stack[2].isString() && stack[2].toStringRef() == "trunc";
  if (!is_truncated || !HasSmallest(self)) return true;
  return stack[1].isTensor() ? !stack[1].toTensor().eq(-1).any().item<bool>()
                             : !stack[1].toScalar().equal(-1);
}

// (self, other): it is divided by their greatest common divisor, which may be -1.
bool HasMultiples(const torch::jit::Stack& stack) {
  return !HasSmallest(stack[0].toTensor()) && !HasSmallest(stack[1].toTensor());
}

// LAPACK ends the process for some of the other matrices. torch checks those of linalg_eig only.
bool IsFinite(const torch::jit::Stack& stack) {
  return stack[0].toTensor().isfinite().all().item<bool>();
}

// (.., log_probs, targets, ..)
template <int kLogProbs>
bool AreLabels(const torch::jit::Stack& stack) {
  return AreIndices(stack[kLogProbs + 1].toTensor(), stack[kLogProbs].toTensor().size(2));
}

// (grad, indices, offset2bag, bag_size, maximum_indices, num_weights, ..)
bool AreRows(const torch::jit::Stack& stack) {
  return AreIndices(stack[1].toTensor(), stack[5].toInt());
}

// (grad, weight, indices, ..)
bool AreRowsOfWeight(const torch::jit::Stack& stack) {
  return AreIndices(stack[2].toTensor(), stack[1].toTensor().size(0));
}

// (.., data, reduce, lengths, .., offsets, axis, ..): torch's kernel checks lengths alone, and not
// if it is told that they are right.
template <int kData, int kLengths, int kOffsets>
bool AreSegments(const torch::jit::Stack& stack) {
  const at::Tensor data = stack[kData].toTensor();
  const int64_t axis = c10::maybe_wrap_dim(stack[kOffsets + 1].toInt(), data.dim());
  const int64_t rows = data.size(axis);
  // What lies before the axis has segments of its own each.
  const auto fits = [&](const at::Tensor& segments) {
    return segments.dim() == axis + 1 &&
           segments.sizes().slice(0, axis) == data.sizes().slice(0, axis);
  };
  const auto given = [&](int i) { return stack[i].isTensor() && stack[i].toTensor().defined(); };
  if (given(kLengths)) {
    const at::Tensor lengths = stack[kLengths].toTensor();
    if (!fits(lengths) || !AreIndices(lengths, rows + 1)) return false;
    if (!AreIndices(lengths.sum(-1), rows + 1)) return false;
  }
  if (!given(kOffsets)) return true;
  const at::Tensor offsets = stack[kOffsets].toTensor();
  return fits(offsets) && AreIndices(offsets, rows + 1) && offsets.diff().ge(0).all().item<bool>();
}

}  // namespace

Condition FindCondition(std::string_view name) {
  static constexpr auto kConditions = std::to_array<std::pair<std::string_view, Condition>>({
      {"any_rows", HasRows},
      {"finite", IsFinite},
      {"labels", AreLabels<0>},
      {"labels_of_backward", AreLabels<1>},
      {"multiples", HasMultiples},
      {"quotients", HasQuotients},
      {"rows", AreRows},
      {"rows_of_weight", AreRowsOfWeight},
      {"segments", AreSegments<0, 2, 4>},
      {"segments_of_backward", AreSegments<2, 4, 5>},
  });
  return ops::Named(kConditions, name);
}

}  // namespace torch_xla_lite::aten
