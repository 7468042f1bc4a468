// Definition of the XLA custom call segment_reduce, the same for CPU and CUDA.
//
//   torch_xla_lite.segment_reduce
//     data [rows, width] T, offsets [segments + 1] int  ->  reduced [segments, width] T
//   torch_xla_lite.segment_reduce_backward
//     grad [segments, width] T, reduced, data, offsets  ->  grad of data [rows, width] T
//   attributes: op       the op's name for error messages
//               reduce   0 sum, 1 mean, 2 max, 3 min
//               initial  the start value of each reduction (f64, forward only)
//               empty    the result of a segment without rows (f64, forward only)
//               whole    whether the last offset must be the number of rows (bool)
//
// Segment i is data[offsets[i]] ... data[offsets[i + 1] - 1]. For max and min, NaN wins over
// every number. The gradient of a maximum (minimum) is shared equally by all elements that are
// equal to it; rows that belong to no segment have gradient 0.
//
// T is float32, float64, bfloat16 or float16; reductions use at least float32, and give the same
// bits each time.
//
// Offsets are invalid if they decrease, lie outside of [0, rows], or with `whole` do not end at
// `rows`. The CPU then raises an error. On CUDA, where a kernel cannot raise one, segments that are
// not valid ranges become NaN and other results are unspecified; only memory of the operands is
// accessed.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_SEGMENT_REDUCE_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_SEGMENT_REDUCE_H_

#include <xla/ffi/api/ffi.h>

#include <cstdint>
#include <string_view>

#include "torch_xla_lite/csrc/kernels/element_type.h"

namespace torch_xla_lite::kernels {

enum class Reduce : int64_t { kSum = 0, kMean = 1, kMax = 2, kMin = 3 };

// The operands and attributes of a call.
struct Segments {
  std::string_view op;
  xffi::AnyBuffer data;
  xffi::AnyBuffer offsets;
  Reduce reduce;
  bool whole;

  int64_t rows() const { return data.dimensions()[0]; }
  int64_t width() const { return data.dimensions()[1]; }
  int64_t count() const { return offsets.dimensions()[0] - 1; }
};

inline xffi::Error CheckSegments(const Segments& segments, const xffi::AnyBuffer& reduced) {
  const auto wrong = [&](const char* problem) { return Invalid(segments.op, problem); };
  if (segments.data.dimensions().size() != 2) return wrong("expects data to be a matrix.");
  if (segments.offsets.dimensions().size() != 1 || segments.count() < 0) {
    return wrong("expects offsets to be a vector with at least one element.");
  }
  if (!IsIndex(segments.offsets.element_type())) return wrong("expects int32 or int64 offsets.");
  const auto dimensions = reduced.dimensions();
  if (dimensions.size() != 2 || dimensions[0] != segments.count() ||
      dimensions[1] != segments.width() || reduced.element_type() != segments.data.element_type()) {
    return wrong("expects the result to have one row for each segment, and the dtype of data.");
  }
  if (segments.reduce < Reduce::kSum || segments.reduce > Reduce::kMin) {
    return wrong("expects reduce to be 0 (sum), 1 (mean), 2 (max) or 3 (min).");
  }
  return xffi::Error::Success();
}

inline xffi::Error CheckSegmentsBackward(const Segments& segments, const xffi::AnyBuffer& grad,
                                         const xffi::AnyBuffer& reduced,
                                         const xffi::AnyBuffer& grad_data) {
  if (auto error = CheckSegments(segments, grad); error.failure()) return error;
  if (auto error = CheckSegments(segments, reduced); error.failure()) return error;
  if (grad_data.dimensions() != segments.data.dimensions() ||
      grad_data.element_type() != segments.data.element_type()) {
    return Invalid(segments.op, "expects the gradient to have the shape and dtype of data.");
  }
  return xffi::Error::Success();
}

// The operands and attributes in the order of the handler's parameters; each device appends the
// context that it needs.
inline auto SegmentReduceSignature() {
  return xffi::Ffi::Bind()
      .Attr<std::string_view>("op")
      .Attr<int64_t>("reduce")
      .Attr<bool>("whole")
      .Attr<double>("initial")
      .Attr<double>("empty")
      .Arg<xffi::AnyBuffer>()   // data
      .Arg<xffi::AnyBuffer>()   // offsets
      .Ret<xffi::AnyBuffer>();  // reduced
}

inline auto SegmentReduceBackwardSignature() {
  return xffi::Ffi::Bind()
      .Attr<std::string_view>("op")
      .Attr<int64_t>("reduce")
      .Attr<bool>("whole")
      .Arg<xffi::AnyBuffer>()   // grad
      .Arg<xffi::AnyBuffer>()   // reduced
      .Arg<xffi::AnyBuffer>()   // data
      .Arg<xffi::AnyBuffer>()   // offsets
      .Ret<xffi::AnyBuffer>();  // grad of data
}

}  // namespace torch_xla_lite::kernels

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_SEGMENT_REDUCE_H_
