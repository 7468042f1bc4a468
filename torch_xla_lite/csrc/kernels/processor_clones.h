// LITE_CLONES: compiles a function for several generations of processors.
//
//   LITE_CLONES float Sum(const float* x, int64_t n) { return SumOf(x, n); }
//
// On x86-64 these are the baseline, AVX2 and AVX-512; the loader chooses one. Functions that it
// calls are compiled with it. gcc before 12 and clang compile the baseline alone.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_PROCESSOR_CLONES_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_PROCESSOR_CLONES_H_

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define LITE_CLONES \
  __attribute__((flatten, target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define LITE_CLONES
#endif

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_PROCESSOR_CLONES_H_
