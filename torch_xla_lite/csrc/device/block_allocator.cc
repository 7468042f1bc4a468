#include "torch_xla_lite/csrc/device/block_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace torch_xla_lite::device {
namespace {

thread_local bool is_active = false;

// Linux allows a process 65,530 mappings, which XLA needs, too (runtime/executable_cache.cc).
constexpr size_t kMostBlocks = 8192;

// So much more than was in use is kept: arrays of sizes that a small step needs one after the
// other.
constexpr size_t kKeptMore = size_t{8} << 20;

// A period has so many allocations, if nothing ends it earlier.
constexpr size_t kPeriod = 16384;

// Eight sizes between two powers of two. What is never touched of a block is no memory.
size_t BlockSize(size_t size) {
  const size_t step = std::bit_floor(size) / 8;
  return (size + step - 1) / step * step;
}

// Replaces torch's allocator of the CPU, which it calls for all but blocks.
class BlockAllocator final : public c10::Allocator {
 public:
  explicit BlockAllocator(c10::Allocator* others) : others_(*others) {}

  c10::DataPtr allocate(size_t size) override {
    if (is_active && size >= kSmallestBlock) {
      void* const block = Take(BlockSize(size));
      if (block != nullptr) {
        // As torch's own allocator does.
        c10::profiledCPUMemoryReporter().New(block, size);
        return {block, block, &Free, c10::Device(c10::kCPU)};
      }
    }
    return others_.allocate(size);
  }
  void copy_data(void* target, const void* source, size_t size) const override {
    std::memcpy(target, source, size);
  }
  c10::DeleterFnPtr raw_deleter() const override { return &FreeAny; }

  BlockBytes Count() {
    const std::lock_guard lock(mutex_);
    return {used_bytes_, kept_bytes_};
  }
  void EndPeriod() {
    const std::lock_guard lock(mutex_);
    BeginPeriod();
    UnmapExcess();
  }
  void ReleaseKept() {
    const std::lock_guard lock(mutex_);
    while (!kept_.empty()) Unmap(kept_.front());
  }
  std::mutex& mutex() { return mutex_; }

 private:
  struct Kept {
    void* start;
    size_t size;
  };
  using KeptBlocks = std::list<Kept>;

  static void Free(void* block);
  // Also memory of the other allocator.
  static void FreeAny(void* memory);

  void* Take(size_t size) {
    const std::lock_guard lock(mutex_);
    const std::optional<Kept> kept = TakeKept(size);
    const Kept block = kept ? *kept : Map(size);
    if (block.start == nullptr) return nullptr;
    used_.emplace(block.start, block.size);
    used_bytes_ += block.size;
    peak_ = std::max(peak_, used_bytes_);
    if (++count_ % kPeriod == 0) BeginPeriod();
    UnmapExcess();
    return block.start;
  }

  Kept Map(size_t size) const {
    if (used_.size() + kept_.size() >= kMostBlocks) return {nullptr, 0};
    void* block = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return {block == MAP_FAILED ? nullptr : block, size};
  }

  void BeginPeriod() { last_peak_ = std::exchange(peak_, used_bytes_); }

  // The block that was freed last, which the processor's cache may still have, of those of the
  // smallest size that is enough, and at most half as much again.
  std::optional<Kept> TakeKept(size_t size) {
    const auto of_size = by_size_.lower_bound(size);
    if (of_size == by_size_.end() || of_size->first > size + size / 2) return std::nullopt;
    const Kept block = *of_size->second.back();
    kept_.erase(of_size->second.back());
    of_size->second.pop_back();
    if (of_size->second.empty()) by_size_.erase(of_size);
    kept_bytes_ -= block.size;
    return block;
  }

  bool IsBlock(void* memory) {
    const std::lock_guard lock(mutex_);
    return used_.contains(memory);
  }

  void Return(void* block) {
    c10::profiledCPUMemoryReporter().Delete(block);
    const std::lock_guard lock(mutex_);
    const auto used = used_.find(block);
    const size_t size = used->second;
    used_.erase(used);
    used_bytes_ -= size;
    kept_bytes_ += size;
    by_size_[size].push_back(kept_.insert(kept_.end(), {block, size}));
    UnmapExcess();
  }

  // A loop may need its arrays of different sizes at different times. So more stays mapped than was
  // lately in use at once. What was freed first goes: if that is too little, it is of no use.
  void UnmapExcess() {
    const size_t peak = std::max(peak_, last_peak_);
    const size_t most = kKeptMore + peak + peak / 8;
    while (!kept_.empty() && used_bytes_ + kept_bytes_ > most) Unmap(kept_.front());
  }

  // The block is the one of its size that was freed first.
  void Unmap(Kept block) {
    munmap(block.start, block.size);
    const auto of_size = by_size_.find(block.size);
    kept_.erase(of_size->second.front());
    of_size->second.pop_front();
    if (of_size->second.empty()) by_size_.erase(of_size);
    kept_bytes_ -= block.size;
  }

  c10::Allocator& others_;
  std::mutex mutex_;
  std::unordered_map<void*, size_t> used_;
  size_t used_bytes_ = 0;
  size_t peak_ = 0;
  size_t last_peak_ = 0;
  size_t count_ = 0;
  // In the order in which they were freed.
  KeptBlocks kept_;
  std::map<size_t, std::deque<KeptBlocks::iterator>> by_size_;
  size_t kept_bytes_ = 0;
};

// Never destroyed: tensors may outlive static objects.
BlockAllocator& Blocks() {
  static auto* blocks = [] {
    auto* const created = new BlockAllocator(c10::GetCPUAllocator());
    c10::SetCPUAllocator(created);
    pthread_atfork([] { Blocks().mutex().lock(); }, [] { Blocks().mutex().unlock(); },
                   [] { Blocks().mutex().unlock(); });
    return created;
  }();
  return *blocks;
}

void BlockAllocator::Free(void* block) { Blocks().Return(block); }

void BlockAllocator::FreeAny(void* memory) {
  if (Blocks().IsBlock(memory)) {
    Free(memory);
  } else {
    Blocks().others_.raw_deleter()(memory);
  }
}

const bool kRegistered = (Blocks(), true);

}  // namespace

BlockScope::BlockScope() : was_active_(std::exchange(is_active, true)) {}
BlockScope::~BlockScope() { is_active = was_active_; }

BlockBytes CountBlockBytes() { return Blocks().Count(); }
void EndBlockPeriod() { Blocks().EndPeriod(); }
void ReleaseKeptBlocks() { Blocks().ReleaseKept(); }

}  // namespace torch_xla_lite::device
