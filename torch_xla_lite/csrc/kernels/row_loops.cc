#include "torch_xla_lite/csrc/kernels/row_loops.h"

#include <functional>

#include "torch_xla_lite/csrc/kernels/processor_clones.h"

namespace torch_xla_lite::kernels {
namespace {

// Fewer columns than this are processed one after another: they are too few for vectors.
constexpr int64_t kNarrow = 4;

template <typename T, typename Fold>
inline void FoldRows(const T* x, int64_t rows, int64_t stride, int64_t n, T* total, Fold fold) {
  if (n < kNarrow) {
    for (int64_t i = 0; i < n; ++i) {
      T folded = total[i];
      for (int64_t row = 0; row < rows; ++row) folded = fold(folded, x[row * stride + i]);
      total[i] = folded;
    }
    return;
  }
  for (int64_t row = 0; row < rows; ++row) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) total[i] = fold(total[i], x[row * stride + i]);
  }
}

template <typename T>
inline T LargerOrNan(T best, T x) {
  return ((x > best) | (x != x)) ? x : best;
}

template <typename T>
inline T SmallerOrNan(T best, T x) {
  return ((x < best) | (x != x)) ? x : best;
}

template <typename T>
inline bool IsBest(T x, T best) {
  return (x == best) | (x != x);
}

template <typename T>
inline void CountBestOf(const T* x, int64_t rows, int64_t stride, int64_t n, const T* best,
                        T* counts) {
  if (n < kNarrow) {
    for (int64_t i = 0; i < n; ++i) {
      T count = counts[i];
      for (int64_t row = 0; row < rows; ++row)
        count += IsBest(x[row * stride + i], best[i]) ? T{1} : T{0};
      counts[i] = count;
    }
    return;
  }
  for (int64_t row = 0; row < rows; ++row) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) counts[i] += IsBest(x[row * stride + i], best[i]) ? T{1} : T{0};
  }
}

template <typename T>
inline void ShareAmongBestOf(const T* x, int64_t rows, int64_t stride, int64_t n, const T* best,
                             const T* shares, T* out) {
  if (n < kNarrow) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t at = i; at < rows * stride; at += stride) {
        out[at] = IsBest(x[at], best[i]) ? shares[i] : T{0};
      }
    }
    return;
  }
  for (int64_t row = 0; row < rows; ++row) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = row * stride + i;
      out[at] = IsBest(x[at], best[i]) ? shares[i] : T{0};
    }
  }
}

}  // namespace

LITE_CLONES void AddRows(const float* x, int64_t rows, int64_t stride, int64_t n, float* total) {
  FoldRows(x, rows, stride, n, total, std::plus<float>());
}
LITE_CLONES void AddRows(const double* x, int64_t rows, int64_t stride, int64_t n, double* total) {
  FoldRows(x, rows, stride, n, total, std::plus<double>());
}

LITE_CLONES void TakeLarger(const float* x, int64_t rows, int64_t stride, int64_t n, float* best) {
  FoldRows(x, rows, stride, n, best, LargerOrNan<float>);
}
LITE_CLONES void TakeLarger(const double* x, int64_t rows, int64_t stride, int64_t n,
                            double* best) {
  FoldRows(x, rows, stride, n, best, LargerOrNan<double>);
}

LITE_CLONES void TakeSmaller(const float* x, int64_t rows, int64_t stride, int64_t n, float* best) {
  FoldRows(x, rows, stride, n, best, SmallerOrNan<float>);
}
LITE_CLONES void TakeSmaller(const double* x, int64_t rows, int64_t stride, int64_t n,
                             double* best) {
  FoldRows(x, rows, stride, n, best, SmallerOrNan<double>);
}

LITE_CLONES void CountBest(const float* x, int64_t rows, int64_t stride, int64_t n,
                           const float* best, float* counts) {
  CountBestOf(x, rows, stride, n, best, counts);
}
LITE_CLONES void CountBest(const double* x, int64_t rows, int64_t stride, int64_t n,
                           const double* best, double* counts) {
  CountBestOf(x, rows, stride, n, best, counts);
}

LITE_CLONES void ShareAmongBest(const float* x, int64_t rows, int64_t stride, int64_t n,
                                const float* best, const float* shares, float* out) {
  ShareAmongBestOf(x, rows, stride, n, best, shares, out);
}
LITE_CLONES void ShareAmongBest(const double* x, int64_t rows, int64_t stride, int64_t n,
                                const double* best, const double* shares, double* out) {
  ShareAmongBestOf(x, rows, stride, n, best, shares, out);
}

}  // namespace torch_xla_lite::kernels
