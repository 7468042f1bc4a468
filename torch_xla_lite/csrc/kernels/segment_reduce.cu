// segment_reduce on CUDA: a warp for each part of a segment (segment_walk.h), no atomics.
//
// Forward: ReduceChunks, then ReduceSegments. Backward: SpreadGradient; for max and min, the two
// kernels of the forward first count the elements that share the gradient of each segment.

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <string_view>

#include "torch_xla_lite/csrc/kernels/device.cuh"
#include "torch_xla_lite/csrc/kernels/element.h"
#include "torch_xla_lite/csrc/kernels/element_type.h"
#include "torch_xla_lite/csrc/kernels/segment_reduce.h"
#include "torch_xla_lite/csrc/kernels/segment_walk.h"

namespace torch_xla_lite::kernels {
namespace {

constexpr int kWarpsOfBlock = 8;
constexpr int kThreads = kWarp * kWarpsOfBlock;

// The segments, and how lanes and warps share the work.
struct Walk {
  Offsets offsets;
  int64_t width;
  Lanes lanes;
  int64_t tiles;  // groups of `lanes.columns` columns, which a warp processes together

  int64_t units(int64_t parts) const { return parts * tiles; }
};

// The position of a thread: the first unit of work of its warp, and its lane.
struct Place {
  __device__ static int64_t first_unit() {
    return (int64_t{blockIdx.x} * kThreads + threadIdx.x) / kWarp;
  }
  __device__ static int64_t unit_stride() { return int64_t{gridDim.x} * kWarpsOfBlock; }
  __device__ static int lane() { return threadIdx.x % kWarp; }
};

template <typename A>
__device__ A NeutralOf(Reduce reduce) {
  if (reduce == Reduce::kMax) return static_cast<A>(-INFINITY);
  if (reduce == Reduce::kMin) return static_cast<A>(INFINITY);
  return 0;
}

// NaN wins.
template <typename A>
__device__ A Combined(Reduce reduce, A a, A b) {
  if (reduce == Reduce::kMax) return b > a || b != b ? b : a;
  if (reduce == Reduce::kMin) return b < a || b != b ? b : a;
  return a + b;
}

// The elements of data.
template <typename T>
struct Elements {
  const T* data;
  int64_t width;

  __device__ Accumulator<T> operator()(int64_t row, int64_t column, int64_t) const {
    return Widened(data[row * width + column]);
  }
};

// 1 for each element that equals the result of its segment, or is NaN: they share the gradient.
template <typename T>
struct Matches {
  const T* data;
  const T* reduced;
  int64_t width;

  __device__ Accumulator<T> operator()(int64_t row, int64_t column, int64_t segment) const {
    const auto x = Widened(data[row * width + column]);
    return x == Widened(reduced[segment * width + column]) || x != x ? 1 : 0;
  }
};

// Combines `total` with the rows of a range that belong to this lane.
template <typename A, typename Value>
__device__ A OverRows(Reduce reduce, const Value& value, Range rows, int64_t column,
                      int64_t segment, int lane_row, int lane_rows, A total) {
#pragma unroll 4
  for (int64_t row = rows.begin + lane_row; row < rows.end; row += lane_rows) {
    total = Combined(reduce, total, value(row, column, segment));
  }
  return total;
}

// Combines the lanes of each column; all of these lanes get the result.
template <typename A>
__device__ A OverLanes(Reduce reduce, A own, int columns) {
  for (int distance = columns; distance < kWarp; distance *= 2) {
    own = Combined(reduce, own, __shfl_xor_sync(kAllLanes, own, distance));
  }
  return own;
}

// Reduces each chunk that lies in one segment to a row of `partial`, which has a row for each
// chunk; rows of other chunks are not written.
template <typename A, typename Value>
__global__ void ReduceChunks(Walk walk, Reduce reduce, Value value, A* partial) {
  const int lane = Place::lane();
  for (int64_t unit = Place::first_unit(); unit < walk.offsets.chunks() * walk.tiles;
       unit += Place::unit_stride()) {
    const int64_t chunk = unit / walk.tiles;
    const int64_t column = unit % walk.tiles * walk.lanes.columns + walk.lanes.column(lane);
    const int64_t segment = walk.offsets.SegmentOfChunk(chunk);
    if (segment < 0) continue;  // the same for all lanes
    A own = NeutralOf<A>(reduce);
    if (column < walk.width) {
      const Range rows{chunk * kChunkRows, (chunk + 1) * kChunkRows};
      own = OverRows(reduce, value, rows, column, segment, walk.lanes.row(lane), walk.lanes.rows(),
                     own);
    }
    own = OverLanes(reduce, own, walk.lanes.columns);
    if (walk.lanes.row(lane) == 0 && column < walk.width) {
      partial[chunk * walk.width + column] = own;
    }
  }
}

// Reduces each segment, using `partial` (from ReduceChunks) for its whole chunks, and passes the
// result and the number of rows to `finish`.
template <typename A, typename Value, typename Finish>
__global__ void ReduceSegments(Walk walk, Reduce reduce, Value value, const A* partial,
                               Finish finish) {
  const Elements<A> chunk_value{partial, walk.width};
  const int lane = Place::lane();
  for (int64_t unit = Place::first_unit(); unit < walk.offsets.segments * walk.tiles;
       unit += Place::unit_stride()) {
    const int64_t segment = unit / walk.tiles;
    const int64_t column = unit % walk.tiles * walk.lanes.columns + walk.lanes.column(lane);
    const bool is_range = walk.offsets.IsRange(segment);
    const int64_t begin = is_range ? walk.offsets[segment] : 0;
    const int64_t end = is_range ? walk.offsets[segment + 1] : 0;
    A own = NeutralOf<A>(reduce);
    if (column < walk.width) {
      const Parts parts = PartsOf(begin, end);
      const int row = walk.lanes.row(lane), rows = walk.lanes.rows();
      own = OverRows(reduce, value, parts.first, column, segment, row, rows, own);
      own = OverRows(reduce, chunk_value, parts.chunks, column, segment, row, rows, own);
      own = OverRows(reduce, value, parts.last, column, segment, row, rows, own);
    }
    own = OverLanes(reduce, own, walk.lanes.columns);
    if (walk.lanes.row(lane) == 0 && column < walk.width) {
      finish(segment * walk.width + column, own, is_range ? end - begin : -1);
    }
  }
}

// Stores a result of the forward op.
template <typename T>
struct StoreReduced {
  Reduce reduce;
  double initial;
  double empty;
  T* reduced;

  __device__ void operator()(int64_t at, Accumulator<T> total, int64_t rows) const {
    using A = Accumulator<T>;
    A result = Combined(reduce, static_cast<A>(initial), total);
    if (reduce == Reduce::kMean) result /= static_cast<A>(rows);
    if (rows == 0) result = static_cast<A>(empty);
    if (rows < 0) result = static_cast<A>(NAN);
    reduced[at] = Narrowed<T>(result);
  }
};

// Stores how many elements share a gradient.
template <typename A>
struct StoreCount {
  A* counts;

  __device__ void operator()(int64_t at, A total, int64_t) const { counts[at] = total; }
};

// The gradient of an element of a sum or a mean ...
template <typename T>
struct EqualShare {
  const T* grad;
  Offsets offsets;
  bool mean;
  int64_t width;

  __device__ Accumulator<T> operator()(int64_t, int64_t column, int64_t segment) const {
    const auto share = Widened(grad[segment * width + column]);
    return mean ? share / static_cast<Accumulator<T>>(offsets[segment + 1] - offsets[segment])
                : share;
  }
};

// ... and of an element of a maximum or minimum.
template <typename T>
struct ShareOfMatches {
  const T* grad;
  const Accumulator<T>* counts;
  Matches<T> matches;

  __device__ Accumulator<T> operator()(int64_t row, int64_t column, int64_t segment) const {
    const int64_t at = segment * matches.width + column;
    return matches(row, column, segment) != 0 ? Widened(grad[at]) / counts[at] : 0;
  }
};

// Sets the gradient of each element to `share(row, column, segment)`, or 0 if its row is in no
// segment. A warp has 32 consecutive rows, so that most rows have the segment of the row before.
template <typename T, typename Share>
__global__ void SpreadGradient(Walk walk, Share share, T* grad_data) {
  const int lane = Place::lane();
  const int64_t rows = walk.offsets.rows;
  for (int64_t unit = Place::first_unit(); unit * kWarp < rows; unit += Place::unit_stride()) {
    const int64_t end = min((unit + 1) * kWarp, rows);
    int64_t segment = -1, segment_end = 0;
    for (int64_t row = unit * kWarp + walk.lanes.row(lane); row < end; row += walk.lanes.rows()) {
      if (segment < 0 || row >= segment_end) {
        segment = walk.offsets.SegmentOf(row);
        segment_end = segment < 0 ? 0 : walk.offsets[segment + 1];
      }
      for (int64_t column = walk.lanes.column(lane); column < walk.width;
           column += walk.lanes.columns) {
        const Accumulator<T> gradient = segment < 0 ? 0 : share(row, column, segment);
        grad_data[row * walk.width + column] = Narrowed<T>(gradient);
      }
    }
  }
}

Walk WalkOver(const Segments& segments) {
  const Lanes lanes = LanesFor(segments.width());
  return {
      .offsets = {.values = segments.offsets.untyped_data(),
                  .wide = segments.offsets.element_type() == xffi::DataType::S64,
                  .segments = segments.count(),
                  .rows = segments.rows()},
      .width = segments.width(),
      .lanes = lanes,
      .tiles = (segments.width() + lanes.columns - 1) / lanes.columns,
  };
}

// Scratch memory. It stays valid for kernels that are launched before the allocator is destroyed:
// XLA reuses it in the order of the stream.
template <typename A>
xffi::ErrorOr<A*> Allocate(xffi::ScratchAllocator& scratch, std::string_view op, int64_t count) {
  if (count == 0) return static_cast<A*>(nullptr);
  const auto memory = scratch.Allocate(count * sizeof(A), alignof(A));
  if (memory.has_value()) return static_cast<A*>(*memory);
  return xffi::Unexpected(xffi::Error(xffi::ErrorCode::kResourceExhausted,
                                      std::string(op) + ": the device has no memory for " +
                                          std::to_string(count * sizeof(A)) + " bytes."));
}

// Launches the two kernels that reduce. There must be at least one segment and one column.
template <typename A, typename Value, typename Finish>
xffi::Error ReduceAll(std::string_view op, const Walk& walk, Reduce reduce, const Value& value,
                      const Finish& finish, xffi::ScratchAllocator& scratch, cudaStream_t stream) {
  const int64_t chunks = walk.offsets.chunks();
  const auto partial = Allocate<A>(scratch, op, chunks * walk.width);
  if (partial.has_error()) return partial.error();
  if (chunks > 0) {
    ReduceChunks<<<Blocks(walk.units(chunks), kWarpsOfBlock), kThreads, 0, stream>>>(
        walk, reduce, value, *partial);
    if (auto error = LaunchError(op); error.failure()) return error;
  }
  const A* done = *partial;
  ReduceSegments<<<Blocks(walk.units(walk.offsets.segments), kWarpsOfBlock), kThreads, 0, stream>>>(
      walk, reduce, value, done, finish);
  return LaunchError(op);
}

template <typename T, typename Share>
xffi::Error Spread(std::string_view op, const Walk& walk, const Share& share, T* grad_data,
                   cudaStream_t stream) {
  const int64_t units = (walk.offsets.rows + kWarp - 1) / kWarp;
  SpreadGradient<<<Blocks(units, kWarpsOfBlock), kThreads, 0, stream>>>(walk, share, grad_data);
  return LaunchError(op);
}

template <typename T>
xffi::Error RunForward(const Segments& segments, double initial, double empty, T* reduced,
                       xffi::ScratchAllocator& scratch, cudaStream_t stream) {
  if (segments.count() == 0 || segments.width() == 0) return xffi::Error::Success();
  const Elements<T> elements{static_cast<const T*>(segments.data.untyped_data()), segments.width()};
  const StoreReduced<T> store{segments.reduce, initial, empty, reduced};
  return ReduceAll<Accumulator<T>>(segments.op, WalkOver(segments), segments.reduce, elements,
                                   store, scratch, stream);
}

template <typename T>
xffi::Error RunBackward(const Segments& segments, const T* grad, const T* reduced, T* grad_data,
                        xffi::ScratchAllocator& scratch, cudaStream_t stream) {
  using A = Accumulator<T>;
  const int64_t width = segments.width();
  if (segments.rows() == 0 || width == 0) return xffi::Error::Success();
  const Walk walk = WalkOver(segments);
  if (segments.reduce == Reduce::kSum || segments.reduce == Reduce::kMean) {
    const bool mean = segments.reduce == Reduce::kMean;
    return Spread(segments.op, walk, EqualShare<T>{grad, walk.offsets, mean, width}, grad_data,
                  stream);
  }
  const auto counts = Allocate<A>(scratch, segments.op, segments.count() * width);
  if (counts.has_error()) return counts.error();
  const Matches<T> matches{static_cast<const T*>(segments.data.untyped_data()), reduced, width};
  if (segments.count() > 0) {
    auto error = ReduceAll<A>(segments.op, walk, Reduce::kSum, matches, StoreCount<A>{*counts},
                              scratch, stream);
    if (error.failure()) return error;
  }
  return Spread(segments.op, walk, ShareOfMatches<T>{grad, *counts, matches}, grad_data, stream);
}

xffi::Error Forward(std::string_view op, int64_t reduce, bool whole, double initial, double empty,
                    xffi::AnyBuffer data, xffi::AnyBuffer offsets,
                    xffi::Result<xffi::AnyBuffer> reduced, xffi::ScratchAllocator scratch,
                    cudaStream_t stream) {
  const Segments segments{op, data, offsets, static_cast<Reduce>(reduce), whole};
  if (auto error = CheckSegments(segments, *reduced); error.failure()) return error;
  return ForFloat(op, data.element_type(), [&]<typename T>(T) {
    return RunForward<T>(segments, initial, empty, static_cast<T*>(reduced->untyped_data()),
                         scratch, stream);
  });
}

xffi::Error Backward(std::string_view op, int64_t reduce, bool whole, xffi::AnyBuffer grad,
                     xffi::AnyBuffer reduced, xffi::AnyBuffer data, xffi::AnyBuffer offsets,
                     xffi::Result<xffi::AnyBuffer> grad_data, xffi::ScratchAllocator scratch,
                     cudaStream_t stream) {
  const Segments segments{op, data, offsets, static_cast<Reduce>(reduce), whole};
  if (auto error = CheckSegmentsBackward(segments, grad, reduced, *grad_data); error.failure()) {
    return error;
  }
  return ForFloat(op, data.element_type(), [&]<typename T>(T) {
    return RunBackward<T>(segments, static_cast<const T*>(grad.untyped_data()),
                          static_cast<const T*>(reduced.untyped_data()),
                          static_cast<T*>(grad_data->untyped_data()), scratch, stream);
  });
}

}  // namespace
}  // namespace torch_xla_lite::kernels

XLA_FFI_DEFINE_HANDLER_SYMBOL(TorchXlaLiteSegmentReduce, torch_xla_lite::kernels::Forward,
                              torch_xla_lite::kernels::SegmentReduceSignature()
                                  .Ctx<xla::ffi::ScratchAllocator>()
                                  .Ctx<torch_xla_lite::kernels::Stream>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(TorchXlaLiteSegmentReduceBackward, torch_xla_lite::kernels::Backward,
                              torch_xla_lite::kernels::SegmentReduceBackwardSignature()
                                  .Ctx<xla::ffi::ScratchAllocator>()
                                  .Ctx<torch_xla_lite::kernels::Stream>());
