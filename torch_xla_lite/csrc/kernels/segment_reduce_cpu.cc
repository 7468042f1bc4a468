// segment_reduce on the CPU: one thread per segment, one row after another, in blocks of columns.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

#include "torch_xla_lite/csrc/kernels/block.h"
#include "torch_xla_lite/csrc/kernels/element.h"
#include "torch_xla_lite/csrc/kernels/element_type.h"
#include "torch_xla_lite/csrc/kernels/parallel.h"
#include "torch_xla_lite/csrc/kernels/row_loops.h"
#include "torch_xla_lite/csrc/kernels/segment_reduce.h"
#include "torch_xla_lite/csrc/kernels/simd_loops.h"

namespace torch_xla_lite::kernels {
namespace {

// The start value of reductions, and the result of a segment without rows.
struct Start {
  double initial;
  double empty;
};

// Reduces n columns of some rows into `total`.
template <typename A>
void Combine(Reduce reduce, const A* x, int64_t rows, int64_t stride, int64_t n, A* total) {
  switch (reduce) {
    case Reduce::kSum:
    case Reduce::kMean:
      return AddRows(x, rows, stride, n, total);
    case Reduce::kMax:
      return TakeLarger(x, rows, stride, n, total);
    case Reduce::kMin:
      return TakeSmaller(x, rows, stride, n, total);
  }
}

// The same for any element type. Rows that must be converted are read one by one.
template <typename T>
void ReduceColumns(Reduce reduce, const T* first, int64_t rows, int64_t width, int64_t n,
                   Accumulator<T>* total) {
  Block<T> block;
  const int64_t together = std::is_same_v<T, Accumulator<T>> ? rows : 1;
  for (int64_t row = 0; row < rows; row += together) {
    Combine(reduce, block.Read(first + row * width, n), together, width, n, total);
  }
}

// The sum of a single column: its rows are contiguous, so several are added at a time.
template <typename T>
Accumulator<T> SumOfColumn(const T* first, int64_t rows) {
  Accumulator<T> total = 0;
  Block<T> block;
  for (int64_t at = 0; at < rows; at += kBlock) {
    const int64_t size = std::min(kBlock, rows - at);
    total += Sum(block.Read(first + at, size), size);
  }
  return total;
}

template <typename T>
void ReduceSegment(Reduce reduce, const Start& start, const T* first, int64_t rows, int64_t width,
                   T* out) {
  using A = Accumulator<T>;
  const bool sums = reduce == Reduce::kSum || reduce == Reduce::kMean;
  Block<T> result;
  for (int64_t at = 0; at < width; at += kBlock) {
    const int64_t size = std::min(kBlock, width - at);
    A* total = result.Target(out + at);
    std::fill_n(total, size, static_cast<A>(rows == 0 ? start.empty : start.initial));
    if (sums && width == 1) {
      total[0] += SumOfColumn(first, rows);
    } else {
      ReduceColumns(reduce, first + at, rows, width, size, total);
    }
    if (reduce == Reduce::kMean && rows > 0) {
      for (int64_t i = 0; i < size; ++i) total[i] /= static_cast<A>(rows);
    }
    result.Write(out + at, size);
  }
}

// The gradient of a sum or mean: it is the same for all rows.
template <typename T>
void SpreadGradient(const T* grad, int64_t divisor, int64_t rows, int64_t width, T* out) {
  using A = Accumulator<T>;
  if (rows == 0) return;
  for (int64_t at = 0; at < width; at += kBlock) {
    const int64_t size = std::min(kBlock, width - at);
    Block<T> in, result;
    const A* x = in.Read(grad + at, size);
    A* y = result.Target(out + at);
    for (int64_t i = 0; i < size; ++i) y[i] = x[i] / static_cast<A>(divisor);
    result.Write(out + at, size);
  }
  if (width == 1) {
    std::fill_n(out + 1, rows - 1, *out);
  } else {
    for (int64_t row = 1; row < rows; ++row) std::copy_n(out, width, out + row * width);
  }
}

// The gradient of a maximum or minimum: elements that are equal to it share it.
template <typename T>
void ShareGradient(const T* grad, const T* reduced, const T* first, int64_t rows, int64_t width,
                   T* out) {
  using A = Accumulator<T>;
  constexpr bool kAsItIs = std::is_same_v<T, A>;
  A shares[kBlock];
  for (int64_t at = 0; at < width; at += kBlock) {
    const int64_t size = std::min(kBlock, width - at);
    Block<T> best_block, in, result;
    const A* best = best_block.Read(reduced + at, size);
    const int64_t together = kAsItIs ? rows : 1;
    std::fill_n(shares, size, A{0});
    for (int64_t row = 0; row < rows; row += together) {
      CountBest(in.Read(first + row * width + at, size), together, width, size, best, shares);
    }
    const A* g = in.Read(grad + at, size);
    for (int64_t i = 0; i < size; ++i) shares[i] = g[i] / shares[i];
    for (int64_t row = 0; row < rows; row += together) {
      T* to = out + row * width + at;
      ShareAmongBest(in.Read(first + row * width + at, size), together, width, size, best, shares,
                     result.Target(to));
      result.Write(to, size);
    }
  }
}

template <typename Index>
xffi::Error CheckOffsets(const Segments& segments, const Index* offsets) {
  int64_t before = 0;
  for (int64_t i = 0; i <= segments.count(); ++i) {
    const int64_t offset = offsets[i];
    if (offset < before || offset > segments.rows()) {
      return Invalid(segments.op, "offset " + std::to_string(offset) + " of segment " +
                                      std::to_string(i) + " is not in [" + std::to_string(before) +
                                      ", " + std::to_string(segments.rows()) +
                                      "], between the previous offset and the number of rows.");
    }
    before = offset;
  }
  if (segments.whole && before != segments.rows()) {
    return Invalid(segments.op, "segments have " + std::to_string(before) +
                                    " rows in total, but data has " +
                                    std::to_string(segments.rows()) + ".");
  }
  return xffi::Error::Success();
}

// The number of segments, of average size, that are worth waking a thread for.
int64_t SegmentsOfOneTask(const Segments& segments) {
  const int64_t rows_each = segments.rows() / std::max<int64_t>(1, segments.count()) + 1;
  return RowsOfOneTask(rows_each * segments.width());
}

template <typename T, typename Index>
xffi::Error RunForward(const Segments& segments, const Start& start, xffi::ThreadPool& pool,
                       T* reduced) {
  const auto* offsets = static_cast<const Index*>(segments.offsets.untyped_data());
  if (auto error = CheckOffsets(segments, offsets); error.failure()) return error;
  const auto* data = static_cast<const T*>(segments.data.untyped_data());
  const int64_t width = segments.width();
  const int64_t task = SegmentsOfOneTask(segments);
  ParallelFor(pool, segments.count(), task, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      ReduceSegment(segments.reduce, start, data + offsets[i] * width, offsets[i + 1] - offsets[i],
                    width, reduced + i * width);
    }
  });
  return xffi::Error::Success();
}

template <typename T, typename Index>
xffi::Error RunBackward(const Segments& segments, const T* grad, const T* reduced,
                        xffi::ThreadPool& pool, T* grad_data) {
  const auto* offsets = static_cast<const Index*>(segments.offsets.untyped_data());
  if (auto error = CheckOffsets(segments, offsets); error.failure()) return error;
  const auto* data = static_cast<const T*>(segments.data.untyped_data());
  const int64_t width = segments.width();
  const int64_t task = SegmentsOfOneTask(segments);
  ParallelFor(pool, segments.count(), task, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t rows = offsets[i + 1] - offsets[i];
      const T* g = grad + i * width;
      T* out = grad_data + offsets[i] * width;
      switch (segments.reduce) {
        case Reduce::kSum:
          SpreadGradient(g, 1, rows, width, out);
          break;
        case Reduce::kMean:
          SpreadGradient(g, rows, rows, width, out);
          break;
        case Reduce::kMax:
        case Reduce::kMin:
          ShareGradient(g, reduced + i * width, data + offsets[i] * width, rows, width, out);
          break;
      }
    }
  });
  std::fill(grad_data, grad_data + offsets[0] * width, T{});
  std::fill(grad_data + offsets[segments.count()] * width, grad_data + segments.rows() * width,
            T{});
  return xffi::Error::Success();
}

xffi::Error Forward(std::string_view op, int64_t reduce, bool whole, double initial, double empty,
                    xffi::AnyBuffer data, xffi::AnyBuffer offsets,
                    xffi::Result<xffi::AnyBuffer> reduced, xffi::ThreadPool pool) {
  const Segments segments{op, data, offsets, static_cast<Reduce>(reduce), whole};
  if (auto error = CheckSegments(segments, *reduced); error.failure()) return error;
  return ForFloat(op, data.element_type(), [&]<typename T>(T) {
    return ForIndex(offsets.element_type(), [&]<typename Index>(Index) {
      return RunForward<T, Index>(segments, {initial, empty}, pool,
                                  static_cast<T*>(reduced->untyped_data()));
    });
  });
}

xffi::Error Backward(std::string_view op, int64_t reduce, bool whole, xffi::AnyBuffer grad,
                     xffi::AnyBuffer reduced, xffi::AnyBuffer data, xffi::AnyBuffer offsets,
                     xffi::Result<xffi::AnyBuffer> grad_data, xffi::ThreadPool pool) {
  const Segments segments{op, data, offsets, static_cast<Reduce>(reduce), whole};
  if (auto error = CheckSegmentsBackward(segments, grad, reduced, *grad_data); error.failure()) {
    return error;
  }
  return ForFloat(op, data.element_type(), [&]<typename T>(T) {
    return ForIndex(offsets.element_type(), [&]<typename Index>(Index) {
      return RunBackward<T, Index>(segments, static_cast<const T*>(grad.untyped_data()),
                                   static_cast<const T*>(reduced.untyped_data()), pool,
                                   static_cast<T*>(grad_data->untyped_data()));
    });
  });
}

}  // namespace
}  // namespace torch_xla_lite::kernels

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    TorchXlaLiteSegmentReduce, torch_xla_lite::kernels::Forward,
    torch_xla_lite::kernels::SegmentReduceSignature().Ctx<xla::ffi::ThreadPool>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    TorchXlaLiteSegmentReduceBackward, torch_xla_lite::kernels::Backward,
    torch_xla_lite::kernels::SegmentReduceBackwardSignature().Ctx<xla::ffi::ThreadPool>());
