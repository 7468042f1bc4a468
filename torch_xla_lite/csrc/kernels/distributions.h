// Numbers of distributions, from the bits of jax's default generator.
//
//   Draw(Distribution::kPoisson, Threefry::Of(seed, offset), 0, n, {rates}, values);
//
// They are those of lowering/random.py and lowering/rejection.py, but for rounding.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_DISTRIBUTIONS_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_DISTRIBUTIONS_H_

#include <array>
#include <cstdint>

#include "torch_xla_lite/csrc/kernels/threefry.h"

namespace torch_xla_lite::kernels {

// The first have no parameters. lowering/base/ffi.py has the same numbers.
enum class Distribution : int64_t {
  kUniform,      // in [0, 1)
  kNormal,       // with the mean 0 and the deviation 1
  kExponential,  // with the rate 1
  kCauchy,       // with the median 0 and the scale 1
  kLogNormal,    // mean and deviation
  kGamma,        // shape
  kLogGamma,     // shape; logarithms of the numbers
  kPoisson,      // rate
  kBinomial,     // count and probability
};

// For each number a parameter, or none.
template <typename T>
using Parameters = std::array<const T*, 2>;

// As many as take some 20 us.
int64_t GrainOf(Distribution distribution);

// Writes the elements from `begin` to `end - 1`, float or double.
template <typename T>
void Draw(Distribution distribution, const Threefry& key, int64_t begin, int64_t end,
          const Parameters<T>& parameters, T* values);

}  // namespace torch_xla_lite::kernels

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_DISTRIBUTIONS_H_
