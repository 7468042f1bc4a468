// softmax_cross_entropy on CUDA: a warp or a block reads each row once.

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "torch_xla_lite/csrc/kernels/device.cuh"
#include "torch_xla_lite/csrc/kernels/element.h"
#include "torch_xla_lite/csrc/kernels/element_type.h"
#include "torch_xla_lite/csrc/kernels/online_softmax.h"
#include "torch_xla_lite/csrc/kernels/softmax_cross_entropy.h"

namespace torch_xla_lite::kernels {
namespace {

// Threads per row: a warp for up to kFewClasses classes, otherwise a block.
constexpr int kWarp = 32;
constexpr int kBlockThreads = 512;
constexpr int kWarpsOfBlock = 8;  // if each warp has its own row
constexpr int64_t kFewClasses = 1024;

// A thread reads 16 bytes at a time if all rows are aligned to 16 bytes.
template <typename T>
constexpr int kPack = 16 / sizeof(T);

template <typename T>
struct Rows {
  const T* logits;
  const void* labels;
  bool wide_labels;
  bool packed;
  int64_t batch;
  int64_t classes;
  int64_t ignore_index;

  __device__ int64_t Label(int64_t row) const {
    return wide_labels ? static_cast<const int64_t*>(labels)[row]
                       : static_cast<const int32_t*>(labels)[row];
  }

  __device__ bool InRange(int64_t label) const { return label >= 0 && label < classes; }
};

template <typename T>
__device__ void ReadPack(const T* row, int64_t pack, Accumulator<T> (&x)[kPack<T>]) {
  const uint4 raw = reinterpret_cast<const uint4*>(row)[pack];
  T values[kPack<T>];
  memcpy(values, &raw, sizeof(raw));
  for (int i = 0; i < kPack<T>; ++i) x[i] = Widened(values[i]);
}

template <typename T>
__device__ void WritePack(const Accumulator<T> (&x)[kPack<T>], T* row, int64_t pack) {
  T values[kPack<T>];
  for (int i = 0; i < kPack<T>; ++i) values[i] = Narrowed<T>(x[i]);
  uint4 raw;
  memcpy(&raw, values, sizeof(raw));
  reinterpret_cast<uint4*>(row)[pack] = raw;
}

template <typename A>
__device__ OnlineSoftmax<A> MergedInWarp(OnlineSoftmax<A> own) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    OnlineSoftmax<A> other;
    other.top = __shfl_xor_sync(kAllLanes, own.top, distance);
    other.sum = __shfl_xor_sync(kAllLanes, own.sum, distance);
    own.Merge(other);
  }
  return own;
}

// Merges the values of all threads of a row; each thread gets the result.
template <int kThreads, typename A>
__device__ OnlineSoftmax<A> MergedInRow(OnlineSoftmax<A> own) {
  own = MergedInWarp(own);
  if constexpr (kThreads > kWarp) {
    constexpr int kWarps = kThreads / kWarp;
    static_assert(kWarps <= kWarp);
    __shared__ A tops[kWarps], sums[kWarps];
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    __syncthreads();  // The values of the previous row have been read.
    if (lane == 0) {
      tops[warp] = own.top;
      sums[warp] = own.sum;
    }
    __syncthreads();
    own = {};
    if (lane < kWarps) {
      own.top = tops[lane];
      own.sum = sums[lane];
    }
    own = MergedInWarp(own);
  }
  return own;
}

// The rows of a warp or block, and the index of a thread in it. All threads of a row run the same
// iterations, because MergedInRow synchronises them.
template <int kThreads>
struct Place {
  __device__ int64_t first_row() const {
    return (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kThreads;
  }
  __device__ int64_t row_stride() const { return int64_t{gridDim.x} * blockDim.x / kThreads; }
  __device__ int thread() const { return threadIdx.x % kThreads; }
};

template <int kThreads, typename T>
__global__ void ForwardKernel(Rows<T> rows, Accumulator<T>* loss,
                              Normalizer<Accumulator<T>>* normalizers) {
  using A = Accumulator<T>;
  const Place<kThreads> place;
  for (int64_t row = place.first_row(); row < rows.batch; row += place.row_stride()) {
    const T* x = rows.logits + row * rows.classes;
    OnlineSoftmax<A> own;
    if (rows.packed) {
      for (int64_t i = place.thread(); i < rows.classes / kPack<T>; i += kThreads) {
        A pack[kPack<T>];
        ReadPack(x, i, pack);
        own.Add(pack);
      }
    } else {
      for (int64_t i = place.thread(); i < rows.classes; i += kThreads) {
        const A one[1] = {Widened(x[i])};
        own.Add(one);
      }
    }
    own = MergedInRow<kThreads>(own);
    if (place.thread() != 0) continue;
    const int64_t label = rows.Label(row);
    const Normalizer<A> normalizer{.top = own.Shift(), .sum = own.sum};
    normalizers[row] = normalizer;
    if (label == rows.ignore_index) {
      loss[row] = 0;
    } else {
      loss[row] = rows.InRange(label) ? normalizer.Loss(Widened(x[label])) : static_cast<A>(NAN);
    }
  }
}

// The gradients of a row's elements.
template <typename A>
struct RowGradient {
  A top;
  A scale;
  A grad;

  // `own`: whether x is the score of the row's label.
  __device__ A operator()(A x, bool own) const {
    const A spread = scale * std::exp(x - top);
    return own ? spread - grad : spread;
  }
};

template <int kThreads, typename T>
__global__ void BackwardKernel(Rows<T> rows, const Accumulator<T>* grads,
                               const Normalizer<Accumulator<T>>* normalizers, T* grad_logits) {
  using A = Accumulator<T>;
  const Place<kThreads> place;
  for (int64_t row = place.first_row(); row < rows.batch; row += place.row_stride()) {
    const T* x = rows.logits + row * rows.classes;
    T* out = grad_logits + row * rows.classes;
    const int64_t label = rows.Label(row);
    const bool ignored = label == rows.ignore_index;
    const A grad = ignored || rows.InRange(label) ? grads[row] : static_cast<A>(NAN);
    const Normalizer<A> normalizer = normalizers[row];
    const RowGradient<A> gradient{normalizer.top, grad / normalizer.sum, grad};
    if (rows.packed) {
      for (int64_t i = place.thread(); i < rows.classes / kPack<T>; i += kThreads) {
        A pack[kPack<T>];
        ReadPack(x, i, pack);
        for (int j = 0; j < kPack<T>; ++j) {
          const bool own = i * kPack<T> + j == label;
          pack[j] = ignored ? A{0} : gradient(pack[j], own);
        }
        WritePack(pack, out, i);
      }
    } else {
      for (int64_t i = place.thread(); i < rows.classes; i += kThreads) {
        out[i] = Narrowed<T>(ignored ? A{0} : gradient(Widened(x[i]), i == label));
      }
    }
  }
}

template <typename T>
Rows<T> RowsOf(const Scores& scores, const void* also_packed) {
  const auto is_aligned = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; };
  const auto* logits = static_cast<const T*>(scores.logits.untyped_data());
  return {
      .logits = logits,
      .labels = scores.labels.untyped_data(),
      .wide_labels = scores.labels.element_type() == xffi::DataType::S64,
      .packed = scores.classes() % kPack<T> == 0 && is_aligned(logits) && is_aligned(also_packed),
      .batch = scores.batch(),
      .classes = scores.classes(),
      .ignore_index = scores.ignore_index,
  };
}

template <typename T>
xffi::Error RunForward(const Scores& scores, cudaStream_t stream, Accumulator<T>* loss,
                       Normalizer<Accumulator<T>>* normalizers) {
  const auto rows = RowsOf<T>(scores, nullptr);
  if (rows.batch == 0) return xffi::Error::Success();
  if (rows.classes <= kFewClasses) {
    ForwardKernel<kWarp><<<Blocks(rows.batch, kWarpsOfBlock), kWarp * kWarpsOfBlock, 0, stream>>>(
        rows, loss, normalizers);
  } else {
    ForwardKernel<kBlockThreads>
        <<<Blocks(rows.batch, 1), kBlockThreads, 0, stream>>>(rows, loss, normalizers);
  }
  return LaunchError(scores.op);
}

template <typename T>
xffi::Error RunBackward(const Scores& scores, cudaStream_t stream, const Accumulator<T>* grads,
                        const Normalizer<Accumulator<T>>* normalizers, T* grad_logits) {
  const auto rows = RowsOf<T>(scores, grad_logits);
  if (rows.batch == 0 || rows.classes == 0) return xffi::Error::Success();
  if (rows.classes <= kFewClasses) {
    BackwardKernel<kWarp><<<Blocks(rows.batch, kWarpsOfBlock), kWarp * kWarpsOfBlock, 0, stream>>>(
        rows, grads, normalizers, grad_logits);
  } else {
    BackwardKernel<kBlockThreads><<<Blocks(rows.batch, 1), kBlockThreads, 0, stream>>>(
        rows, grads, normalizers, grad_logits);
  }
  return LaunchError(scores.op);
}

xffi::Error Forward(std::string_view op, int64_t ignore_index, xffi::AnyBuffer logits,
                    xffi::AnyBuffer labels, xffi::Result<xffi::AnyBuffer> loss,
                    xffi::Result<xffi::AnyBuffer> normalizer, cudaStream_t stream) {
  const Scores scores{op, logits, labels, ignore_index};
  if (auto error = CheckForward(scores, *loss, *normalizer); error.failure()) return error;
  return ForFloat(op, logits.element_type(), [&]<typename T>(T) {
    using A = Accumulator<T>;
    return RunForward<T>(scores, stream, static_cast<A*>(loss->untyped_data()),
                         static_cast<Normalizer<A>*>(normalizer->untyped_data()));
  });
}

xffi::Error Backward(std::string_view op, int64_t ignore_index, xffi::AnyBuffer grad,
                     xffi::AnyBuffer logits, xffi::AnyBuffer labels, xffi::AnyBuffer normalizer,
                     xffi::Result<xffi::AnyBuffer> grad_logits, cudaStream_t stream) {
  const Scores scores{op, logits, labels, ignore_index};
  if (auto error = CheckBackward(scores, grad, normalizer, *grad_logits); error.failure()) {
    return error;
  }
  return ForFloat(op, logits.element_type(), [&]<typename T>(T) {
    using A = Accumulator<T>;
    return RunBackward<T>(scores, stream, static_cast<const A*>(grad.untyped_data()),
                          static_cast<const Normalizer<A>*>(normalizer.untyped_data()),
                          static_cast<T*>(grad_logits->untyped_data()));
  });
}

}  // namespace
}  // namespace torch_xla_lite::kernels

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    TorchXlaLiteSoftmaxCrossEntropy, torch_xla_lite::kernels::Forward,
    torch_xla_lite::kernels::SoftmaxCrossEntropySignature().Ctx<torch_xla_lite::kernels::Stream>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(TorchXlaLiteSoftmaxCrossEntropyBackward,
                              torch_xla_lite::kernels::Backward,
                              torch_xla_lite::kernels::SoftmaxCrossEntropyBackwardSignature()
                                  .Ctx<torch_xla_lite::kernels::Stream>());
