// Computes log(sum(exp(x))) in one pass over the elements, in any order and by several threads.
//
//   OnlineSoftmax<float> own;
//   const float x[4] = {...};
//   own.Add(x);                                 // several elements at a time
//   own.Merge(of_another_thread);
//   own.Shift() + std::log(own.sum);            // log(sum(exp(x)))
//
// The sum is relative to the largest element so far and is rescaled when a larger one comes, so it
// does not overflow. An element that is NaN or +infinity makes it NaN.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_ONLINE_SOFTMAX_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_ONLINE_SOFTMAX_H_

#include <cmath>

#include "torch_xla_lite/csrc/kernels/host_device.h"

namespace torch_xla_lite::kernels {

// A: float or double.
template <typename A>
struct OnlineSoftmax {
  A top = -INFINITY;  // the largest element
  A sum = 0;          // of exp(x - Shift())

  // 0 if all elements are -infinity, because -infinity - -infinity is NaN.
  LITE_HOST_DEVICE A Shift() const { return top == static_cast<A>(-INFINITY) ? A{0} : top; }

  template <int kCount>
  LITE_HOST_DEVICE void Add(const A (&x)[kCount]) {
    A higher = top;
    for (int i = 0; i < kCount; ++i) higher = x[i] > higher ? x[i] : higher;
    if (higher != top) RaiseTo(higher);
    const A shift = Shift();
    for (int i = 0; i < kCount; ++i) sum += std::exp(x[i] - shift);
  }

  // If a merges b and b merges a, both get the same bits. For that only the lower one is scaled:
  // where compilers fuse multiplication and addition (GPUs, 64-bit ARM), the last bit would
  // otherwise depend on which of two products is fused.
  LITE_HOST_DEVICE void Merge(const OnlineSoftmax& other) {
    OnlineSoftmax lower = other;
    if (other.top > top) {
      lower = *this;
      *this = other;
    }
    lower.RaiseTo(top);
    sum += lower.sum;
  }

 private:
  LITE_HOST_DEVICE void RaiseTo(A higher) {
    const A before = top;
    top = higher;
    sum *= std::exp(before - Shift());
  }
};

}  // namespace torch_xla_lite::kernels

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_ONLINE_SOFTMAX_H_
