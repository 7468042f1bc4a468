// Isotonic regression for XLA on the CPU: pool adjacent violators, one pass over each row.
//
//   XlaIsotonicFit    values [..., n] -> the nearest non-decreasing sequence of each row
//   XlaIsotonicPool   values, fitted [..., n] -> means of values where fitted is the same

#include <cstdint>
#include <span>
#include <vector>

#include "xla/ffi/api/ffi.h"

namespace {

namespace ffi = xla::ffi;
using Matrix = ffi::Buffer<ffi::F32>;
using MatrixResult = ffi::Result<Matrix>;

// Neighbours that share their mean.
struct Block {
  double sum;
  int64_t size;

  double Mean() const { return sum / static_cast<double>(size); }
};

void Write(const Block& block, float*& out) {
  for (int64_t i = 0; i < block.size; ++i) *out++ = static_cast<float>(block.Mean());
}

void FitRow(std::span<const float> values, float* out, std::vector<Block>& blocks) {
  blocks.clear();
  for (const float value : values) {
    Block block{value, 1};
    // A block that is no larger than the one before it belongs to it.
    while (!blocks.empty() && blocks.back().Mean() >= block.Mean()) {
      block.sum += blocks.back().sum;
      block.size += blocks.back().size;
      blocks.pop_back();
    }
    blocks.push_back(block);
  }
  for (const Block& block : blocks) Write(block, out);
}

void PoolRow(std::span<const float> values, std::span<const float> fitted, float* out) {
  for (size_t start = 0; start < values.size();) {
    Block block{values[start], 1};
    for (size_t i = start + 1; i < values.size() && fitted[i] == fitted[start]; ++i) {
      block.sum += values[i];
      ++block.size;
    }
    start += block.size;
    Write(block, out);
  }
}

// The rows of a matrix; a vector is one row.
template <typename RowFunction>
ffi::Error ForEachRow(const Matrix& matrix, RowFunction&& function) {
  if (matrix.dimensions().size() == 0) return ffi::Error::InvalidArgument("a row is needed");
  const size_t length = matrix.dimensions().back();
  for (size_t start = 0; start < matrix.element_count(); start += length) function(start, length);
  return ffi::Error::Success();
}

ffi::Error Fit(Matrix values, MatrixResult fitted) {
  std::vector<Block> blocks;
  return ForEachRow(values, [&](size_t start, size_t length) {
    FitRow({values.typed_data() + start, length}, fitted->typed_data() + start, blocks);
  });
}

ffi::Error Pool(Matrix values, Matrix fitted, MatrixResult pooled) {
  return ForEachRow(values, [&](size_t start, size_t length) {
    PoolRow({values.typed_data() + start, length}, {fitted.typed_data() + start, length},
            pooled->typed_data() + start);
  });
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(XlaIsotonicFit, Fit, ffi::Ffi::Bind().Arg<Matrix>().Ret<Matrix>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(XlaIsotonicPool, Pool,
                              ffi::Ffi::Bind().Arg<Matrix>().Arg<Matrix>().Ret<Matrix>());
