// Helpers for the CUDA kernels: conversion of elements, launches, errors.
//
//   float x = Widened(BFloat16{bits});                            // on the GPU
//   Kernel<<<Blocks(rows, 8), 256, 0, stream>>>(...);
//   return LaunchError(op);

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_DEVICE_CUH_
#define TORCH_XLA_LITE_CSRC_KERNELS_DEVICE_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <xla/ffi/api/ffi.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "torch_xla_lite/csrc/kernels/element.h"
#include "torch_xla_lite/csrc/kernels/element_type.h"

namespace torch_xla_lite::kernels {

using Stream = xffi::PlatformStream<cudaStream_t>;

inline constexpr unsigned kAllLanes = 0xffffffff;

__device__ inline float Widened(float x) { return x; }
__device__ inline double Widened(double x) { return x; }
__device__ inline float Widened(BFloat16 x) { return __uint_as_float(unsigned{x.bits} << 16); }
__device__ inline float Widened(Half x) { return __half2float(__ushort_as_half(x.bits)); }

// To the nearest, ties to even.
template <typename T>
__device__ inline T Narrowed(Accumulator<T> x) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
  } else if constexpr (std::is_same_v<T, Half>) {
    return {__half_as_ushort(__float2half_rn(x))};
  } else {
    return x;
  }
}

// The number of blocks for `units` of work, if a block does `units_of_block` at a time. It is
// limited: kernels loop over further units with the stride of the grid.
inline unsigned Blocks(int64_t units, int64_t units_of_block) {
  constexpr int64_t kMost = int64_t{1} << 20;
  const int64_t blocks = (units + units_of_block - 1) / units_of_block;
  return static_cast<unsigned>(std::clamp<int64_t>(blocks, 1, kMost));
}

// The error of the last launch, if any. XLA finds errors of running kernels on the stream.
inline xffi::Error LaunchError(std::string_view op) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return xffi::Error::Success();
  return xffi::Error(xffi::ErrorCode::kInternal,
                     std::string(op) + ": CUDA reports: " + cudaGetErrorString(error) + ".");
}

}  // namespace torch_xla_lite::kernels

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_DEVICE_CUH_
