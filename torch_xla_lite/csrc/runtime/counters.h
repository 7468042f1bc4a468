// Counters of what the runtime did, for torch_xla_lite.debug.metrics() and for tests.
//
//   ++counters.executions;
//
// Thread-safe: each is an atomic number.

#ifndef TORCH_XLA_LITE_CSRC_RUNTIME_COUNTERS_H_
#define TORCH_XLA_LITE_CSRC_RUNTIME_COUNTERS_H_

#include <atomic>
#include <cstdint>

namespace torch_xla_lite::runtime {

struct Counters {
  std::atomic<uint64_t> recorded_ops = 0;
  std::atomic<uint64_t> compiles = 0;
  std::atomic<uint64_t> loads = 0;
  std::atomic<uint64_t> executions = 0;
  std::atomic<uint64_t> interpretations = 0;
  // Of these, the runs by a plan; and how many plans were made.
  std::atomic<uint64_t> planned = 0;
  std::atomic<uint64_t> plans = 0;
  std::atomic<uint64_t> cache_hits = 0;

  // Counts an executable.
  void CountCompiled(bool is_loaded_from_disk) { ++(is_loaded_from_disk ? loads : compiles); }
};

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_COUNTERS_H_
