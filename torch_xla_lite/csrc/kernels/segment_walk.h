// Computes which rows a warp reduces in the CUDA kernels of segment_reduce.
//
// One segment may be longer than all others together, so one warp per segment would not balance the
// work. Rows are therefore also divided into chunks of a fixed size. A chunk that lies inside of
// one segment is first reduced to one row by its own warp; a segment then consists of its first
// rows, the reduced rows of its whole chunks, and its last rows:
//
//   rows       0    256   512   768   1024
//   chunks     |  0  |  1  |  2  |  3  |
//   segments     [     0      )[ 1 )[2 )
//   segment 0: rows 100..255, chunk 1, rows 512..699
//
// Each row is read once, no warp has more than 512 rows plus 1/256 of the longest segment, and the
// order of additions depends only on the offsets.
//
// Invalid offsets give wrong results, but only rows and chunks that exist are accessed.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_SEGMENT_WALK_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_SEGMENT_WALK_H_

#include <cstdint>

#include "torch_xla_lite/csrc/kernels/host_device.h"

namespace torch_xla_lite::kernels {

inline constexpr int64_t kChunkRows = 256;
inline constexpr int kWarp = 32;

struct Range {
  int64_t begin;
  int64_t end;
};

// The offsets of the segments, as int32 or int64.
struct Offsets {
  const void* values;
  bool wide;
  int64_t segments;
  int64_t rows;

  LITE_HOST_DEVICE int64_t operator[](int64_t i) const {
    return wide ? static_cast<const int64_t*>(values)[i] : static_cast<const int32_t*>(values)[i];
  }

  LITE_HOST_DEVICE bool IsRange(int64_t segment) const {
    const int64_t begin = (*this)[segment], end = (*this)[segment + 1];
    return 0 <= begin && begin <= end && end <= rows;
  }

  // The segment that contains a row, -1 if none does.
  LITE_HOST_DEVICE int64_t SegmentOf(int64_t row) const {
    int64_t low = 0, high = segments + 1;  // the first offset beyond the row is one of these
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if ((*this)[middle] <= row) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    const int64_t segment = low - 1;
    if (segment < 0 || segment >= segments || !IsRange(segment)) return -1;
    return row < (*this)[segment + 1] ? segment : -1;
  }

  LITE_HOST_DEVICE int64_t chunks() const { return rows / kChunkRows; }

  // The segment that contains all rows of a chunk, -1 if there is none.
  LITE_HOST_DEVICE int64_t SegmentOfChunk(int64_t chunk) const {
    const int64_t segment = SegmentOf(chunk * kChunkRows);
    return segment >= 0 && (*this)[segment + 1] >= (chunk + 1) * kChunkRows ? segment : -1;
  }
};

// The parts of the rows [begin, end).
struct Parts {
  Range first;   // rows
  Range chunks;  // whole chunks
  Range last;    // rows
};

LITE_HOST_DEVICE inline Parts PartsOf(int64_t begin, int64_t end) {
  const int64_t first_chunk = (begin + kChunkRows - 1) / kChunkRows;
  const int64_t end_chunk = end / kChunkRows;
  if (first_chunk >= end_chunk) return {{begin, end}, {0, 0}, {end, end}};
  return {
      {begin, first_chunk * kChunkRows}, {first_chunk, end_chunk}, {end_chunk * kChunkRows, end}};
}

// How the lanes of a warp are arranged: `columns` adjacent columns (all of them, up to 32), and as
// many rows as then fit.
struct Lanes {
  int columns;  // a power of two

  LITE_HOST_DEVICE int rows() const { return kWarp / columns; }
  LITE_HOST_DEVICE int column(int lane) const { return lane & (columns - 1); }
  LITE_HOST_DEVICE int row(int lane) const { return lane / columns; }
};

LITE_HOST_DEVICE inline Lanes LanesFor(int64_t width) {
  int columns = 1;
  while (columns < kWarp && columns < width) columns *= 2;
  return {columns};
}

}  // namespace torch_xla_lite::kernels

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_SEGMENT_WALK_H_
