// Vectorised loops over the rows of a matrix, compiled for several generations of processors
// (processor_clones.h).
//
//   std::vector<float> total(n);
//   AddRows(x, rows, stride, n, total.data());   // the sum of each of n columns
//
// Rows begin `stride` elements apart and are processed in order, so results do not depend on the
// processor. All propagate NaN. There may be no rows; ranges must not overlap. Thread-safe: no
// state.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_ROW_LOOPS_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_ROW_LOOPS_H_

#include <cstdint>

namespace torch_xla_lite::kernels {

// total[i] += x[row * stride + i] for each row, in order.
void AddRows(const float* x, int64_t rows, int64_t stride, int64_t n, float* total);
void AddRows(const double* x, int64_t rows, int64_t stride, int64_t n, double* total);

// best[i] becomes x[row * stride + i] if that is larger (smaller) or NaN. A NaN in best stays.
void TakeLarger(const float* x, int64_t rows, int64_t stride, int64_t n, float* best);
void TakeLarger(const double* x, int64_t rows, int64_t stride, int64_t n, double* best);
void TakeSmaller(const float* x, int64_t rows, int64_t stride, int64_t n, float* best);
void TakeSmaller(const double* x, int64_t rows, int64_t stride, int64_t n, double* best);

// Increments counts[i] for each x[row * stride + i] that equals best[i] or is NaN.
void CountBest(const float* x, int64_t rows, int64_t stride, int64_t n, const float* best,
               float* counts);
void CountBest(const double* x, int64_t rows, int64_t stride, int64_t n, const double* best,
               double* counts);

// Sets out[row * stride + i] to shares[i] if x[row * stride + i] equals best[i] or is NaN, else 0.
void ShareAmongBest(const float* x, int64_t rows, int64_t stride, int64_t n, const float* best,
                    const float* shares, float* out);
void ShareAmongBest(const double* x, int64_t rows, int64_t stride, int64_t n, const double* best,
                    const double* shares, double* out);

}  // namespace torch_xla_lite::kernels

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_ROW_LOOPS_H_
