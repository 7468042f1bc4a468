// ParallelFor: shares the iterations of a loop with XLA's thread pool.
//
//   ParallelFor(pool, rows, 64, [&](int64_t begin, int64_t end) { ... });
//
// The calling thread works, too, on any range that has not been started. So the loop ends even if
// all threads of the pool are busy or wait for loops of their own: XLA calls kernels on threads of
// that pool.

#ifndef TORCH_XLA_LITE_CSRC_KERNELS_PARALLEL_H_
#define TORCH_XLA_LITE_CSRC_KERNELS_PARALLEL_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

namespace torch_xla_lite::kernels {

// Calls body(begin, end) for consecutive ranges of at most `grain` that cover [0, count), and
// returns when all have returned. `body` must not throw.
//
// Pool: has Schedule(callable) and num_threads(), as xla::ffi::ThreadPool.
template <typename Pool, typename Body>
void ParallelFor(Pool& pool, int64_t count, int64_t grain, const Body& body) {
  const int64_t ranges = (count + grain - 1) / grain;
  const int64_t helpers = std::min<int64_t>(pool.num_threads(), ranges) - 1;
  if (helpers <= 0) {
    if (count > 0) body(0, count);
    return;
  }
  struct Progress {
    std::atomic<int64_t> begun = 0;
    std::atomic<int64_t> done = 0;
  };
  const auto progress = std::make_shared<Progress>();
  // A helper that starts late finds no range to work on; then it may access only `progress`.
  const auto work = [progress, ranges, count, grain, &body] {
    for (int64_t i; (i = progress->begun.fetch_add(1)) < ranges;) {
      body(i * grain, std::min(count, (i + 1) * grain));
      if (progress->done.fetch_add(1) + 1 == ranges) progress->done.notify_all();
    }
  };
  for (int64_t i = 0; i < helpers; ++i) pool.Schedule([work] { work(); });
  work();
  for (int64_t done; (done = progress->done.load()) < ranges;) progress->done.wait(done);
}

}  // namespace torch_xla_lite::kernels

#endif  // TORCH_XLA_LITE_CSRC_KERNELS_PARALLEL_H_
