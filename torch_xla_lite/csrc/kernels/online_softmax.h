// sum(exp(x)) of elements that are seen once, in any order and by several threads.
//
//   OnlineSoftmax<float> own;
//   const float x[4] = {...};
//   own.Add(x);                                 // some elements at a time
//   own.Merge(of_another_thread);
//   own.Shift() + std::log(own.sum);            // log(sum(exp(x)))
//
// The sum is relative to the largest element so far and scaled anew when a larger one comes, so it
// does not overflow. NaN among the elements makes it NaN, and so does +infinity.

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

  // As long as all is -infinity there is nothing to be relative to.
  LITE_HOST_DEVICE A Shift() const { return top == static_cast<A>(-INFINITY) ? A{0} : top; }

  template <int kCount>
  LITE_HOST_DEVICE void Add(const A (&x)[kCount]) {
    A higher = top;
    for (int i = 0; i < kCount; ++i) higher = x[i] > higher ? x[i] : higher;
    if (higher != top) RaiseTo(higher);
    const A shift = Shift();
    for (int i = 0; i < kCount; ++i) sum += std::exp(x[i] - shift);
  }

  // Of two that merge with each other both get the same. Only the lower one is scaled: where
  // compilers make multiplication and addition one operation (on GPUs and 64-bit ARM), which of two
  // products that is done to would decide the last bit.
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
