#include "torch_xla_lite/csrc/device/host_memory.h"

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace torch_xla_lite::device {
namespace {

class PinnedAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    auto memory = std::make_unique<c10::DataPtr>(c10::GetCPUAllocator()->allocate(size));
    void* data = memory->get();
    if (data == nullptr) return {nullptr, c10::Device(c10::kCPU)};
    {
      const std::lock_guard lock(mutex_);
      ends_[data] = static_cast<char*>(data) + size;
    }
    return {data, memory.release(), &Free, c10::Device(c10::kCPU)};
  }
  void copy_data(void* target, const void* source, size_t size) const override {
    std::memcpy(target, source, size);
  }

  bool Owns(const void* address) {
    const std::lock_guard lock(mutex_);
    auto block = ends_.upper_bound(address);
    return block != ends_.begin() && address < std::prev(block)->second;
  }

  // Copies to the device are finished when they return, and nothing is cached.
  bool record_event(void*, void*, c10::Stream) override { return true; }
  void empty_cache() override {}
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}

 private:
  static void Free(void* context);

  std::mutex mutex_;
  std::map<const void*, const void*> ends_;
};

// Never destroyed: tensors may outlive static objects.
PinnedAllocator& Pinned() {
  static auto* allocator = [] {
    auto* created = new PinnedAllocator;
    at::setHostAllocator(c10::DeviceType::PrivateUse1, created);
    return created;
  }();
  return *allocator;
}

void PinnedAllocator::Free(void* context) {
  const std::unique_ptr<c10::DataPtr> memory(static_cast<c10::DataPtr*>(context));
  const std::lock_guard lock(Pinned().mutex_);
  Pinned().ends_.erase(memory->get());
}

const bool kRegistered = (Pinned(), true);

}  // namespace

c10::Allocator* PinnedMemoryAllocator() { return &Pinned(); }
bool IsPinned(const void* address) { return Pinned().Owns(address); }

}  // namespace torch_xla_lite::device
