// What softmax_cross_entropy means to XLA, whichever device runs it.
//
//   torch_xla_lite.softmax_cross_entropy
//     logits [batch, classes] T, labels [batch] int  ->  loss [batch] A, log_sum_exp [batch] A
//   torch_xla_lite.softmax_cross_entropy_backward
//     grad [batch] A, logits, labels, log_sum_exp    ->  grad of logits [batch, classes] T
//   attributes: op            the op's name for error messages
//               ignore_index  the label of rows that have neither loss nor gradient
//
// T is float32, float64, bfloat16 or float16; A is float64 for float64, else float32. The softmax
// is never stored: the gradient computes it again from log_sum_exp.
//
// A label outside of [0, classes) that is not ignore_index: on the CPU an error, on CUDA, where a
// kernel cannot raise one, a loss and a gradient of NaN for its row.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_SOFTMAX_CROSS_ENTROPY_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_SOFTMAX_CROSS_ENTROPY_H_

#include <xla/ffi/api/ffi.h>

#include <cstdint>
#include <string_view>

#include "torch_xla_lite/csrc/kernels/element.h"

namespace torch_xla_lite::kernels {

// A batch of rows of class scores with the right class of each.
struct Scores {
  std::string_view op;
  xffi::AnyBuffer logits;
  xffi::AnyBuffer labels;
  int64_t ignore_index;

  int64_t batch() const { return logits.dimensions()[0]; }
  int64_t classes() const { return logits.dimensions()[1]; }
};

inline bool IsVector(const xffi::AnyBuffer& buffer, int64_t size, xffi::DataType type) {
  const auto dimensions = buffer.dimensions();
  return dimensions.size() == 1 && dimensions[0] == size && buffer.element_type() == type;
}

inline xffi::Error CheckScores(const Scores& scores) {
  if (scores.logits.dimensions().size() != 2)
    return Invalid(scores.op, "expects logits as matrix.");
  if (!IsVector(scores.labels, scores.batch(), scores.labels.element_type())) {
    return Invalid(scores.op, "expects one label for each row of logits.");
  }
  if (!IsIndex(scores.labels.element_type())) {
    return Invalid(scores.op, "expects labels of int32 or int64.");
  }
  return xffi::Error::Success();
}

inline xffi::Error CheckForward(const Scores& scores, const xffi::AnyBuffer& loss,
                                const xffi::AnyBuffer& log_sum_exp) {
  if (auto error = CheckScores(scores); error.failure()) return error;
  const auto type = AccumulatorType(scores.logits.element_type());
  if (!IsVector(loss, scores.batch(), type) || !IsVector(log_sum_exp, scores.batch(), type)) {
    return Invalid(scores.op, "expects loss and log_sum_exp as vectors, float32 at least.");
  }
  return xffi::Error::Success();
}

inline xffi::Error CheckBackward(const Scores& scores, const xffi::AnyBuffer& grad,
                                 const xffi::AnyBuffer& log_sum_exp,
                                 const xffi::AnyBuffer& grad_logits) {
  if (auto error = CheckForward(scores, grad, log_sum_exp); error.failure()) return error;
  if (grad_logits.dimensions() != scores.logits.dimensions() ||
      grad_logits.element_type() != scores.logits.element_type()) {
    return Invalid(scores.op, "expects the gradient to be like logits.");
  }
  return xffi::Error::Success();
}

// The operands and attributes in the order in which a handler gets them; each device adds what it
// needs to run.
inline auto SoftmaxCrossEntropySignature() {
  return xffi::Ffi::Bind()
      .Attr<std::string_view>("op")
      .Attr<int64_t>("ignore_index")
      .Arg<xffi::AnyBuffer>()   // logits
      .Arg<xffi::AnyBuffer>()   // labels
      .Ret<xffi::AnyBuffer>()   // loss
      .Ret<xffi::AnyBuffer>();  // log_sum_exp
}

inline auto SoftmaxCrossEntropyBackwardSignature() {
  return xffi::Ffi::Bind()
      .Attr<std::string_view>("op")
      .Attr<int64_t>("ignore_index")
      .Arg<xffi::AnyBuffer>()   // grad
      .Arg<xffi::AnyBuffer>()   // logits
      .Arg<xffi::AnyBuffer>()   // labels
      .Arg<xffi::AnyBuffer>()   // log_sum_exp
      .Ret<xffi::AnyBuffer>();  // grad of logits
}

}  // namespace torch_xla_lite::kernels

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_SOFTMAX_CROSS_ENTROPY_H_
