// softmax_cross_entropy on the CPU: a row is read once, in blocks that stay in the L1 cache.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "torch_xla_lite/csrc/kernels/block.h"
#include "torch_xla_lite/csrc/kernels/element.h"
#include "torch_xla_lite/csrc/kernels/element_type.h"
#include "torch_xla_lite/csrc/kernels/parallel.h"
#include "torch_xla_lite/csrc/kernels/simd_loops.h"
#include "torch_xla_lite/csrc/kernels/softmax_cross_entropy.h"

namespace torch_xla_lite::kernels {
namespace {

template <typename T>
Normalizer<Accumulator<T>> NormalizerOf(const T* row, int64_t n) {
  using A = Accumulator<T>;
  constexpr A kNothing = -std::numeric_limits<A>::infinity();
  A top = kNothing, sum = 0;
  Block<T> block;
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t size = std::min(kBlock, n - at);
    const A* x = block.Read(row + at, size);
    const A higher = std::max(top, Max(x, size));
    // 0 if all elements are -infinity, because -infinity - -infinity is NaN.
    const A shift = higher == kNothing ? A{0} : higher;
    if (at > 0 && higher != top) sum *= std::exp(top - shift);
    sum += ExpSum(x, size, shift);
    top = higher;
  }
  return {.top = top == kNothing ? A{0} : top, .sum = sum};
}

template <typename T>
void GradientOfRow(const T* row, int64_t n, int64_t label, Normalizer<Accumulator<T>> normalizer,
                   Accumulator<T> grad, T* out) {
  const Accumulator<T> scale = grad / normalizer.sum;
  Block<T> in, result;
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t size = std::min(kBlock, n - at);
    Accumulator<T>* y = result.Target(out + at);
    ScaledExp(in.Read(row + at, size), size, normalizer.top, scale, y);
    if (label >= at && label < at + size) y[label - at] -= grad;
    result.Write(out + at, size);
  }
}

template <typename Label>
xffi::Error CheckLabels(const Scores& scores, const Label* labels) {
  for (int64_t row = 0; row < scores.batch(); ++row) {
    const int64_t label = labels[row];
    if (label == scores.ignore_index || (label >= 0 && label < scores.classes())) continue;
    return Invalid(scores.op, "label " + std::to_string(label) + " of row " + std::to_string(row) +
                                  " is not in [0, " + std::to_string(scores.classes()) +
                                  ") and is not ignore_index (" +
                                  std::to_string(scores.ignore_index) + ").");
  }
  return xffi::Error::Success();
}

template <typename T, typename Label>
xffi::Error RunForward(const Scores& scores, xffi::ThreadPool& pool, Accumulator<T>* loss,
                       Normalizer<Accumulator<T>>* normalizers) {
  const auto* labels = static_cast<const Label*>(scores.labels.untyped_data());
  if (auto error = CheckLabels(scores, labels); error.failure()) return error;
  const auto* logits = static_cast<const T*>(scores.logits.untyped_data());
  const int64_t n = scores.classes();
  ParallelFor(pool, scores.batch(), RowsOfOneTask(n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* row = logits + i * n;
      normalizers[i] = NormalizerOf(row, n);
      const bool ignored = labels[i] == scores.ignore_index;
      loss[i] = ignored ? 0 : normalizers[i].Loss(Widened(row[labels[i]]));
    }
  });
  return xffi::Error::Success();
}

template <typename T, typename Label>
xffi::Error RunBackward(const Scores& scores, xffi::ThreadPool& pool, const Accumulator<T>* grad,
                        const Normalizer<Accumulator<T>>* normalizers, T* grad_logits) {
  const auto* labels = static_cast<const Label*>(scores.labels.untyped_data());
  if (auto error = CheckLabels(scores, labels); error.failure()) return error;
  const auto* logits = static_cast<const T*>(scores.logits.untyped_data());
  const int64_t n = scores.classes();
  ParallelFor(pool, scores.batch(), RowsOfOneTask(n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* out = grad_logits + i * n;
      if (labels[i] == scores.ignore_index) {
        std::fill_n(out, n, T{});
      } else {
        GradientOfRow(logits + i * n, n, labels[i], normalizers[i], grad[i], out);
      }
    }
  });
  return xffi::Error::Success();
}

xffi::Error Forward(std::string_view op, int64_t ignore_index, xffi::AnyBuffer logits,
                    xffi::AnyBuffer labels, xffi::Result<xffi::AnyBuffer> loss,
                    xffi::Result<xffi::AnyBuffer> normalizer, xffi::ThreadPool pool) {
  const Scores scores{op, logits, labels, ignore_index};
  if (auto error = CheckForward(scores, *loss, *normalizer); error.failure()) return error;
  return ForFloat(op, logits.element_type(), [&]<typename T>(T) {
    return ForIndex(labels.element_type(), [&]<typename Label>(Label) {
      using A = Accumulator<T>;
      return RunForward<T, Label>(scores, pool, static_cast<A*>(loss->untyped_data()),
                                  static_cast<Normalizer<A>*>(normalizer->untyped_data()));
    });
  });
}

xffi::Error Backward(std::string_view op, int64_t ignore_index, xffi::AnyBuffer grad,
                     xffi::AnyBuffer logits, xffi::AnyBuffer labels, xffi::AnyBuffer normalizer,
                     xffi::Result<xffi::AnyBuffer> grad_logits, xffi::ThreadPool pool) {
  const Scores scores{op, logits, labels, ignore_index};
  if (auto error = CheckBackward(scores, grad, normalizer, *grad_logits); error.failure()) {
    return error;
  }
  return ForFloat(op, logits.element_type(), [&]<typename T>(T) {
    return ForIndex(labels.element_type(), [&]<typename Label>(Label) {
      using A = Accumulator<T>;
      return RunBackward<T, Label>(scores, pool, static_cast<const A*>(grad.untyped_data()),
                                   static_cast<const Normalizer<A>*>(normalizer.untyped_data()),
                                   static_cast<T*>(grad_logits->untyped_data()));
    });
  });
}

}  // namespace
}  // namespace torch_xla_lite::kernels

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    TorchXlaLiteSoftmaxCrossEntropy, torch_xla_lite::kernels::Forward,
    torch_xla_lite::kernels::SoftmaxCrossEntropySignature().Ctx<xla::ffi::ThreadPool>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    TorchXlaLiteSoftmaxCrossEntropyBackward, torch_xla_lite::kernels::Backward,
    torch_xla_lite::kernels::SoftmaxCrossEntropyBackwardSignature().Ctx<xla::ffi::ThreadPool>());
