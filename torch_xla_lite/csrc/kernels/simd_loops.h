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
// T is float or double. NaN: Max ignores it, all others propagate it. Ranges may be empty and must
// not overlap. Thread-safe: no state.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_SIMD_LOOPS_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_SIMD_LOOPS_H_

#include <cstdint>

#include "torch_xla_lite/csrc/kernels/element.h"

namespace torch_xla_lite::kernels {

// The largest element, -infinity if there is none.
template <typename T>
T Max(const T* x, int64_t n);

// The sum of exp(x[i] - shift). Each exponential is at most 1 if `shift` is the maximum.
template <typename T>
T ExpSum(const T* x, int64_t n, T shift);

// out[i] = scale * exp(x[i] - shift)
template <typename T>
void ScaledExp(const T* x, int64_t n, T shift, T scale, T* out);

void Widen(const BFloat16* x, int64_t n, float* out);
void Widen(const Half* x, int64_t n, float* out);

// Rounds to the nearest, ties to even; NaN stays NaN.
void Narrow(const float* x, int64_t n, BFloat16* out);
void Narrow(const float* x, int64_t n, Half* out);

// A step of n cells of an LSTM, whose gates are of the 4n arguments [i, f, g, o]:
//   new_c = sigmoid(f) * c + sigmoid(i) * tanh(g),  new_h = sigmoid(o) * tanh(new_c)
template <typename T>
void LstmStep(int64_t n, const T* c, const T* gates, T* new_h, T* new_c);

// Its gradient. `grad_c` is that of new_c, and becomes that of c.
template <typename T>
void LstmStepGradient(int64_t n, const T* c, const T* gates, const T* grad_h, T* grad_c,
                      T* grad_gates);

}  // namespace torch_xla_lite::kernels

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_SIMD_LOOPS_H_
