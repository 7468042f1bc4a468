// A kernel with what makes objects hard to reproduce: templates and variables in an unnamed
// namespace.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "test/bazel/cuda/twice.h"

namespace {

__device__ int launches;

template <typename T>
__global__ void Scale(T* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) atomicAdd(&launches, 1);
  if (i < count) values[i] = Twice(static_cast<float>(values[i]));
}

}  // namespace

cudaError_t Run(__half* halves, __nv_bfloat16* bfloats, int count, cudaStream_t stream) {
  Scale<<<(count + 255) / 256, 256, 0, stream>>>(halves, count);
  Scale<<<(count + 255) / 256, 256, 0, stream>>>(bfloats, count);
  return cudaGetLastError();
}
