#include "torch_xla_lite/csrc/runtime/executable_cache.h"

#include <algorithm>
#include <utility>

#include "torch_xla_lite/csrc/ir/hash.h"

namespace torch_xla_lite::runtime {

ir::Ref<Executable> ExecutableCache::Find(std::span<const uint64_t> key) {
  const auto [begin, end] = by_hash_.equal_range(ir::HashWords(key));
  for (auto it = begin; it != end; ++it) {
    if (!std::ranges::equal(it->second->key, key)) continue;
    entries_.splice(entries_.begin(), entries_, it->second);
    return it->second->executable;
  }
  return {};
}

void ExecutableCache::Insert(std::vector<uint64_t> key, ir::Ref<Executable> executable) {
  const uint64_t hash = ir::HashWords(key);
  entries_.push_front({hash, std::move(key), std::move(executable)});
  by_hash_.emplace(hash, entries_.begin());
  if (entries_.size() <= capacity_) return;
  const auto oldest = std::prev(entries_.end());
  const auto [begin, end] = by_hash_.equal_range(oldest->hash);
  by_hash_.erase(std::find_if(begin, end, [&](const auto& item) { return item.second == oldest; }));
  entries_.pop_back();
}

void ExecutableCache::Clear() {
  by_hash_.clear();
  entries_.clear();
}

}  // namespace torch_xla_lite::runtime
