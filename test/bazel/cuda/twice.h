// A header of ours that device code includes.

#ifndef TEST_BAZEL_CUDA_TWICE_H_
#define TEST_BAZEL_CUDA_TWICE_H_

__device__ inline float Twice(float value) { return 2 * value; }

#endif  // TEST_BAZEL_CUDA_TWICE_H_
