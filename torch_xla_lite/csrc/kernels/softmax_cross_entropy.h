// Definition of the XLA custom call softmax_cross_entropy, the same for CPU and CUDA.
//
//   torch_xla_lite.softmax_cross_entropy
//     logits [batch, classes] T, labels [batch] int  ->  loss [batch] A, normalizer [batch, 2] A
//   torch_xla_lite.softmax_cross_entropy_backward
//     grad [batch] A, logits, labels, normalizer     ->  grad of logits [batch, classes] T
//   attributes: op            the op's name for error messages
//               ignore_index  the label of rows that have neither loss nor gradient
//
// T is float32, float64, bfloat16 or float16; A is float64 for float64, otherwise float32. The
// softmax is never stored: the gradient recomputes it from the normalizer, which has a
// Normalizer<A> for each row.
//
// A label is invalid if it is not in [0, classes) and is not ignore_index. The CPU then raises an
// error; on CUDA, where a kernel cannot raise one, loss and gradient of its row are NaN.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_SOFTMAX_CROSS_ENTROPY_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_SOFTMAX_CROSS_ENTROPY_H_

#include <xla/ffi/api/ffi.h>

#include <cmath>
#include <cstdint>
#include <string_view>

#include "torch_xla_lite/csrc/kernels/element_type.h"
#include "torch_xla_lite/csrc/kernels/host_device.h"

namespace torch_xla_lite::kernels {

// The operands and attributes of a call: class scores, and the true class of each row.
struct Scores {
  std::string_view op;
  xffi::AnyBuffer logits;
  xffi::AnyBuffer labels;
  int64_t ignore_index;

  int64_t batch() const { return logits.dimensions()[0]; }
  int64_t classes() const { return logits.dimensions()[1]; }
};

// Two numbers that turn the scores of a row into its softmax, exp(score - top) / sum. Their
// combination top + log(sum) would not be precise enough: a float32 of a few hundred has too few
// digits after the point for a gradient.
template <typename A>
struct Normalizer {
  A top;  // the largest score; 0 if all are -infinity
  A sum;  // of exp(score - top)

  LITE_HOST_DEVICE A Loss(A score) const { return std::log(sum) + (top - score); }
};

inline bool IsVector(const xffi::AnyBuffer& buffer, int64_t size, xffi::DataType type) {
  const auto dimensions = buffer.dimensions();
  return dimensions.size() == 1 && dimensions[0] == size && buffer.element_type() == type;
}

inline bool IsNormalizer(const xffi::AnyBuffer& buffer, int64_t batch, xffi::DataType type) {
  const auto dimensions = buffer.dimensions();
  return dimensions.size() == 2 && dimensions[0] == batch && dimensions[1] == 2 &&
         buffer.element_type() == type;
}

inline xffi::Error CheckScores(const Scores& scores) {
  if (scores.logits.dimensions().size() != 2)
    return Invalid(scores.op, "expects logits to be a matrix.");
  if (!IsVector(scores.labels, scores.batch(), scores.labels.element_type())) {
    return Invalid(scores.op, "expects one label for each row of logits.");
  }
  if (!IsIndex(scores.labels.element_type())) {
    return Invalid(scores.op, "expects labels of int32 or int64.");
  }
  return xffi::Error::Success();
}

inline xffi::Error CheckForward(const Scores& scores, const xffi::AnyBuffer& loss,
                                const xffi::AnyBuffer& normalizer) {
  if (auto error = CheckScores(scores); error.failure()) return error;
  const auto type = AccumulatorType(scores.logits.element_type());
  if (!IsVector(loss, scores.batch(), type) || !IsNormalizer(normalizer, scores.batch(), type)) {
    return Invalid(scores.op, "expects loss [batch] and normalizer [batch, 2], float32 at least.");
  }
  return xffi::Error::Success();
}

inline xffi::Error CheckBackward(const Scores& scores, const xffi::AnyBuffer& grad,
                                 const xffi::AnyBuffer& normalizer,
                                 const xffi::AnyBuffer& grad_logits) {
  if (auto error = CheckForward(scores, grad, normalizer); error.failure()) return error;
  if (grad_logits.dimensions() != scores.logits.dimensions() ||
      grad_logits.element_type() != scores.logits.element_type()) {
    return Invalid(scores.op, "expects the gradient to have the shape and dtype of logits.");
  }
  return xffi::Error::Success();
}

// The operands and attributes in the order of the handler's parameters; each device appends the
// context that it needs.
inline auto SoftmaxCrossEntropySignature() {
  return xffi::Ffi::Bind()
      .Attr<std::string_view>("op")
      .Attr<int64_t>("ignore_index")
      .Arg<xffi::AnyBuffer>()   // logits
      .Arg<xffi::AnyBuffer>()   // labels
      .Ret<xffi::AnyBuffer>()   // loss
      .Ret<xffi::AnyBuffer>();  // normalizer
}

inline auto SoftmaxCrossEntropyBackwardSignature() {
  return xffi::Ffi::Bind()
      .Attr<std::string_view>("op")
      .Attr<int64_t>("ignore_index")
      .Arg<xffi::AnyBuffer>()   // grad
      .Arg<xffi::AnyBuffer>()   // logits
      .Arg<xffi::AnyBuffer>()   // labels
      .Arg<xffi::AnyBuffer>()   // normalizer
      .Ret<xffi::AnyBuffer>();  // grad of logits
}

}  // namespace torch_xla_lite::kernels

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_SOFTMAX_CROSS_ENTROPY_H_
