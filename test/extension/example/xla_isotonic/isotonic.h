// Isotonic regression of one row: the code that the CPU and the CUDA handlers share.
//
//   FitRow    the monotonic sequence nearest to a row, by pooling adjacent violators, in one pass
//   PoolRow   means of values over the neighbours that have one fitted value
//
// The signatures of the handlers are here too, because XLA finds both under one name with one set
// of attributes.

#ifndef XLA_ISOTONIC_ISOTONIC_H_
#define XLA_ISOTONIC_ISOTONIC_H_

#include <cstdint>

#include "xla/ffi/api/ffi.h"

#ifdef __CUDACC__
#define XLA_ISOTONIC_BOTH __host__ __device__
#else
#define XLA_ISOTONIC_BOTH
#endif

namespace xla_isotonic {

namespace ffi = xla::ffi;

// Neighbours that share their mean.
struct Block {
  double sum;
  int64_t size;

  XLA_ISOTONIC_BOTH double Mean() const { return sum / static_cast<double>(size); }
};

// The attributes of the op `fit`.
struct FitOptions {
  bool increasing;
  double lower;
  double upper;
};

template <typename T>
XLA_ISOTONIC_BOTH T* Fill(T* out, int64_t count, double value) {
  for (int64_t i = 0; i < count; ++i) *out++ = static_cast<T>(value);
  return out;
}

// `blocks` is scratch memory for as many blocks as the row has values.
template <typename T>
XLA_ISOTONIC_BOTH void FitRow(const T* values, int64_t length, const FitOptions& options,
                              Block* blocks, T* fitted) {
  const double sign = options.increasing ? 1 : -1;
  int64_t count = 0;
  for (int64_t i = 0; i < length; ++i) {
    Block block{sign * values[i], 1};
    // A block that is no larger than the one before it is merged with it.
    while (count > 0 && blocks[count - 1].Mean() >= block.Mean()) {
      --count;
      block.sum += blocks[count].sum;
      block.size += blocks[count].size;
    }
    blocks[count++] = block;
  }
  for (int64_t i = 0; i < count; ++i) {
    const double mean = sign * blocks[i].Mean();
    // Comparisons in this order keep NaN.
    const double limited = mean < options.lower   ? options.lower
                           : mean > options.upper ? options.upper
                                                  : mean;
    fitted = Fill(fitted, blocks[i].size, limited);
  }
}

template <typename T>
XLA_ISOTONIC_BOTH void PoolRow(const T* values, const T* fitted, int64_t length, T* pooled) {
  for (int64_t start = 0; start < length;) {
    Block block{values[start], 1};
    for (int64_t i = start + 1; i < length && fitted[i] == fitted[start]; ++i) {
      block.sum += values[i];
      ++block.size;
    }
    start += block.size;
    pooled = Fill(pooled, block.size, block.Mean());
  }
}

inline auto FitSignature() {
  return ffi::Ffi::Bind()
      .Arg<ffi::AnyBuffer>()
      .Ret<ffi::AnyBuffer>()
      .Attr<bool>("increasing")
      .Attr<double>("lower")
      .Attr<double>("upper");
}

inline auto PoolSignature() {
  return ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>();
}

// Values per row and number of rows; a vector is one row.
struct Rows {
  int64_t length;
  int64_t count;

  explicit Rows(const ffi::AnyBuffer& buffer)
      : length(buffer.dimensions().size() == 0 ? 0 : buffer.dimensions().back()),
        count(length == 0 ? 0 : static_cast<int64_t>(buffer.element_count()) / length) {}
};

// Calls `function` with a value of the element type: one handler serves all dtypes.
template <typename Function>
ffi::Error WithElementType(ffi::DataType dtype, Function&& function) {
  if (dtype == ffi::F32) return function(float{});
  if (dtype == ffi::F64) return function(double{});
  return ffi::Error::InvalidArgument("expected float32 or float64");
}

}  // namespace xla_isotonic

#endif  // XLA_ISOTONIC_ISOTONIC_H_
