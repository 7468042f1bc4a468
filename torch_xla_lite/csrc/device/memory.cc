#include "torch_xla_lite/csrc/device/memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cstdint>
#include <utility>

#include "torch_xla_lite/csrc/device/block_allocator.h"
#include "torch_xla_lite/csrc/device/guard.h"

namespace torch_xla_lite::device {
namespace {

// A quantity as torch counts it.
class Quantity {
 public:
  void Increase(int64_t amount) {
    const int64_t now = current_.fetch_add(amount) + amount;
    int64_t peak = peak_.load();
    while (peak < now && !peak_.compare_exchange_weak(peak, now)) continue;
    allocated_ += amount;
  }
  void Decrease(int64_t amount) {
    current_ -= amount;
    freed_ += amount;
  }
  void ResetPeak() { peak_ = current_.load(); }
  void ResetAccumulated() { allocated_ = freed_ = 0; }

  c10::CachingAllocator::StatArray Read() const {
    c10::CachingAllocator::Stat stat;
    stat.current = current_;
    stat.peak = peak_;
    stat.allocated = allocated_;
    stat.freed = freed_;
    c10::CachingAllocator::StatArray result;
    result[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)] = stat;
    return result;
  }

 private:
  std::atomic<int64_t> current_ = 0, peak_ = 0, allocated_ = 0, freed_ = 0;
};

// Never destroyed: tensors may outlive static objects.
MemoryHooks& Hooks() {
  static auto* hooks = new MemoryHooks;
  return *hooks;
}

class JaxAllocator final : public c10::DeviceAllocator {
 public:
  Quantity bytes, arrays;

  c10::DataPtr allocate(size_t) override {
    TORCH_CHECK(false,
                "Memory on device jax cannot be allocated by its size: XLA allocates it.\n"
                "Make a tensor:  torch.empty(size, device='jax')");
  }
  void copy_data(void*, const void*, size_t) const override {
    TORCH_CHECK(false,
                "Memory on device jax cannot be copied by its address.\n"
                "Copy the tensor:  tensor.clone()");
  }

  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {
    if (Hooks().release) Hooks().release();
    ReleaseKeptBlocks();
  }
  // There is one stream.
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    CheckDeviceIndex(index);
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.allocation = stats.active = arrays.Read();
    stats.allocated_bytes = stats.active_bytes = stats.requested_bytes = bytes.Read();
    // What XLA reserves beyond this is its own.
    stats.reserved_bytes = stats.allocated_bytes;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    CheckDeviceIndex(index);
    bytes.ResetAccumulated();
    arrays.ResetAccumulated();
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    CheckDeviceIndex(index);
    bytes.ResetPeak();
    arrays.ResetPeak();
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    CheckDeviceIndex(index);
    TORCH_CHECK(Hooks().info,
                "the memory of device jax is unknown before torch_xla_lite is set up");
    return Hooks().info();
  }
};

JaxAllocator& Allocator() {
  static auto* allocator = [] {
    auto* created = new JaxAllocator;
    c10::SetAllocator(c10::DeviceType::PrivateUse1, created);
    return created;
  }();
  return *allocator;
}

const bool kRegistered = (Allocator(), true);

}  // namespace

void NoteAllocated(size_t num_bytes) {
  Allocator().bytes.Increase(static_cast<int64_t>(num_bytes));
  Allocator().arrays.Increase(1);
}

void NoteFreed(size_t num_bytes) {
  Allocator().bytes.Decrease(static_cast<int64_t>(num_bytes));
  Allocator().arrays.Decrease(1);
}

void SetMemoryHooks(MemoryHooks hooks) { Hooks() = std::move(hooks); }

}  // namespace torch_xla_lite::device
