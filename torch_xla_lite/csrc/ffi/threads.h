// Limits the threads that an ATen kernel uses inside an XLA program.
//
// torch splits work among OpenMP threads, and XLA runs the program on its own thread pool; neither
// knows of the other. A kernel that takes a few microseconds gets slower if it wakes OpenMP's
// threads, which then spin on the cores that XLA needs; a large one gets faster.
//
//   SerialBelow serial(bytes_touched);    // until the end of the scope
//
// A kernel that computes more for each byte than addition does counts its bytes as often.

#ifndef TORCH_XLA_LITE_CSRC_FFI_THREADS_H_
#define TORCH_XLA_LITE_CSRC_FFI_THREADS_H_

#include <cstddef>

namespace torch_xla_lite::ffi {

// Measured on two idle cores: add of 256 kB takes 4.7 us on one thread and 7 to 18 us on two,
// erfinv of 16 MB 22 ms and 12 ms. On busy cores, two threads wait for each other to be scheduled:
// 12 to 30 ms for ops that take 0.3 ms on one.
inline constexpr size_t kSerialBytes = size_t{4} << 20;

// Keeps torch's kernels on the calling thread when they touch less than kSerialBytes. Larger ones
// get the number of threads that torch.set_num_threads set.
class SerialBelow {
 public:
  explicit SerialBelow(size_t bytes);
  ~SerialBelow();
  SerialBelow(const SerialBelow&) = delete;
  SerialBelow& operator=(const SerialBelow&) = delete;

 private:
  int threads_before_ = 1;  // 1: nothing to restore
  int mkl_before_ = 0;
};

}  // namespace torch_xla_lite::ffi

#endif  // TORCH_XLA_LITE_CSRC_FFI_THREADS_H_
