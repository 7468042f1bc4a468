// XLA's FFI handlers for CUDA: XlaIsotonicFit and XlaIsotonicPool, one thread for each row.

#include <cuda_runtime.h>

#include <algorithm>
#include <optional>

#include "isotonic.h"

namespace xla_isotonic {
namespace {

using Stream = ffi::PlatformStream<cudaStream_t>;

constexpr int kThreads = 128;

__device__ int64_t FirstRow() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ int64_t RowStride() { return int64_t{gridDim.x} * blockDim.x; }

template <typename T>
__global__ void FitKernel(const T* values, Rows rows, FitOptions options, Block* blocks,
                          T* fitted) {
  for (int64_t row = FirstRow(); row < rows.count; row += RowStride()) {
    const int64_t start = row * rows.length;
    FitRow(values + start, rows.length, options, blocks + start, fitted + start);
  }
}

template <typename T>
__global__ void PoolKernel(const T* values, const T* fitted, Rows rows, T* pooled) {
  for (int64_t row = FirstRow(); row < rows.count; row += RowStride()) {
    const int64_t start = row * rows.length;
    PoolRow(values + start, fitted + start, rows.length, pooled + start);
  }
}

unsigned Grid(const Rows& rows) {
  return static_cast<unsigned>(std::min<int64_t>((rows.count + kThreads - 1) / kThreads, 65535));
}

ffi::Error LaunchError() {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return ffi::Error::Success();
  return ffi::Error::Internal(cudaGetErrorString(error));
}

ffi::Error Fit(ffi::AnyBuffer values, ffi::Result<ffi::AnyBuffer> fitted, bool increasing,
               double lower, double upper, ffi::ScratchAllocator scratch, cudaStream_t stream) {
  return WithElementType(values.element_type(), [&]<typename T>(T) {
    const Rows rows(values);
    if (rows.count == 0) return ffi::Error::Success();
    const std::optional<void*> blocks =
        scratch.Allocate(rows.count * rows.length * sizeof(Block), alignof(Block));
    if (!blocks) return ffi::Error(ffi::ErrorCode::kResourceExhausted, "no memory for blocks");
    FitKernel<<<Grid(rows), kThreads, 0, stream>>>(
        values.typed_data<T>(), rows, FitOptions{increasing, lower, upper},
        static_cast<Block*>(*blocks), fitted->typed_data<T>());
    return LaunchError();
  });
}

ffi::Error Pool(ffi::AnyBuffer values, ffi::AnyBuffer fitted, ffi::Result<ffi::AnyBuffer> pooled,
                cudaStream_t stream) {
  return WithElementType(values.element_type(), [&]<typename T>(T) {
    const Rows rows(values);
    if (rows.count == 0) return ffi::Error::Success();
    PoolKernel<<<Grid(rows), kThreads, 0, stream>>>(values.typed_data<T>(), fitted.typed_data<T>(),
                                                    rows, pooled->typed_data<T>());
    return LaunchError();
  });
}

}  // namespace
}  // namespace xla_isotonic

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    XlaIsotonicFit, xla_isotonic::Fit,
    xla_isotonic::FitSignature().Ctx<xla::ffi::ScratchAllocator>().Ctx<xla_isotonic::Stream>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(XlaIsotonicPool, xla_isotonic::Pool,
                              xla_isotonic::PoolSignature().Ctx<xla_isotonic::Stream>());
