// PendingLimit: decides where to cut a graph that grows because the program reads no value.
//
//   PendingLimit limit;
//   limit.set_limit(2000);
//   if (limit.Add(signature, is_new)) runtime.StartPending();   // after each recorded op
//   if (limit.AddUpload(num_bytes)) runtime.StartPending();     // before each copy to the device
//
// It is cut where it has many ops, or may hold many bytes that the program has copied to the device
// and dropped, such as the batches of an evaluation.
//
// A cut after exactly n ops would meet a loop of p ops at another place each time, and compile up
// to p graphs. So a cut remembers which ops were recorded last, and the next one waits until they
// come again. It waits for twice the limit at first, and twice as long after each time in vain, but
// not while the program records ops that it never recorded before: it may have no loop. Soon it
// waits longer than a round of the loop takes; then few graphs repeat.
//
// Not thread-safe: each thread has its own.

#ifndef TORCH_XLA_LITE_CSRC_RUNTIME_PENDING_LIMIT_H_
#define TORCH_XLA_LITE_CSRC_RUNTIME_PENDING_LIMIT_H_

#include <cstddef>
#include <cstdint>
#include <unordered_set>

#include "torch_xla_lite/csrc/ir/signature.h"

namespace torch_xla_lite::runtime {

class PendingLimit {
 public:
  // 0: no limit.
  size_t limit() const { return limit_; }
  void set_limit(size_t limit) {
    limit_ = limit;
    patience_ = 2 * limit;
  }

  // Counts an op; is_new: no op had this signature before. Returns whether to run what is pending.
  bool Add(const ir::Signature& signature, bool is_new) {
    // Each op moves the earlier ones up by four bits, so this is a hash of the last sixteen.
    last_ops_ = last_ops_ << 4 ^ signature.number * kOdd;
    has_new_ |= is_new;
    return ++count_ >= limit_ && limit_ != 0 && IsCut();
  }
  // Counts a copy to the device. Returns whether to run what is pending before it.
  bool AddUpload(size_t num_bytes) {
    if (count_ == 0) uploaded_ = 0;  // Nothing is pending that could hold the earlier ones.
    uploaded_ += num_bytes;
    return uploaded_ > kMostUploaded && count_ != 0 && limit_ != 0 && IsCut();
  }
  // What was pending runs.
  void Reset() { count_ = uploaded_ = 0; }

 private:
  static constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;  // Spreads the bits of a number.
  // Programs that never repeat themselves must not fill the memory.
  static constexpr size_t kMostCuts = 1024;
  // Bytes.
  static constexpr size_t kMostUploaded = size_t{128} << 20;

  bool IsCut() {
    if (!cuts_.contains(last_ops_)) {
      // The first cut waits for nothing.
      const bool can_wait = count_ < patience_ && uploaded_ < 2 * kMostUploaded;
      if (!cuts_.empty() && can_wait) return false;
      if (count_ >= limit_) patience_ = has_new_ ? 2 * limit_ : 2 * patience_;
      if (cuts_.size() == kMostCuts) cuts_.clear();
      cuts_.insert(last_ops_);
    }
    has_new_ = false;
    return true;
  }

  size_t limit_ = 0;
  size_t patience_ = 0;  // How many ops may be pending while a cut waits for its place.
  size_t count_ = 0;
  size_t uploaded_ = 0;   // Bytes.
  bool has_new_ = false;  // Whether an op since the last cut was new.
  uint64_t last_ops_ = 0;
  std::unordered_set<uint64_t> cuts_;  // Values of last_ops_.
};

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_PENDING_LIMIT_H_
