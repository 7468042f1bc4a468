// Vectorised loops over contiguous memory, compiled for several generations of processors
// (processor_clones.h).
//
// The kernels consist of these few loops and spend their time in them. Sums are accumulated in
// several lanes, in an order that depends only on the processor.
//
//   float top = Max(x, n);
//   float sum = ExpSum(x, n, top);               // of exp(x[i] - top)
//   Widen(bfloat16s, n, floats);
//
// NaN: Max ignores it, all others propagate it. Ranges may be empty and must not overlap.
// Thread-safe: no state.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_SIMD_LOOPS_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_SIMD_LOOPS_H_

#include <cstdint>

#include "torch_xla_lite/csrc/kernels/element.h"

namespace torch_xla_lite::kernels {

// The largest element, -infinity if there is none.
float Max(const float* x, int64_t n);
double Max(const double* x, int64_t n);

// The sum of exp(x[i] - shift). Each exponential is at most 1 if `shift` is the maximum.
float ExpSum(const float* x, int64_t n, float shift);
double ExpSum(const double* x, int64_t n, double shift);

// out[i] = scale * exp(x[i] - shift)
void ScaledExp(const float* x, int64_t n, float shift, float scale, float* out);
void ScaledExp(const double* x, int64_t n, double shift, double scale, double* out);

void Widen(const BFloat16* x, int64_t n, float* out);
void Widen(const Half* x, int64_t n, float* out);

// Rounds to the nearest, ties to even; NaN stays NaN.
void Narrow(const float* x, int64_t n, BFloat16* out);
void Narrow(const float* x, int64_t n, Half* out);

}  // namespace torch_xla_lite::kernels

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_SIMD_LOOPS_H_
