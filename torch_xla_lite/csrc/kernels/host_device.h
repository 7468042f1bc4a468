// LITE_HOST_DEVICE: marks functions that are compiled for the CPU and for the GPU.
//
//   LITE_HOST_DEVICE inline int64_t HalfOf(int64_t x) { return x / 2; }
//
// Code that determines which memory a kernel accesses is written this way, so that tests can run it
// without a GPU.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_HOST_DEVICE_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_HOST_DEVICE_H_

#ifdef __CUDACC__
#define LITE_HOST_DEVICE __host__ __device__
#else
#define LITE_HOST_DEVICE
#endif

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_HOST_DEVICE_H_
