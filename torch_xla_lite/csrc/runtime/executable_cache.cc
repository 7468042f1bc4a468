#include "torch_xla_lite/csrc/runtime/executable_cache.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "torch_xla_lite/csrc/ir/donation.h"
#include "torch_xla_lite/csrc/ir/graph.h"
#include "torch_xla_lite/csrc/ir/hash.h"
#include "torch_xla_lite/csrc/ir/key.h"

namespace torch_xla_lite::runtime {
namespace {

// Whether more than half of the process's memory mappings are in use; false where /proc does not
// tell. The code of an executable takes dozens of them, Linux allows 65,530 unless it is configured
// otherwise (vm.max_map_count), and XLA crashes when it gets no more. Takes 1 us for each.
bool MappingsAreScarce() {
  int64_t allowed = 0;
  if (!(std::ifstream("/proc/sys/vm/max_map_count") >> allowed)) return false;
  // A line for each.
  std::ifstream mappings("/proc/self/maps");
  using Bytes = std::istreambuf_iterator<char>;
  return std::count(Bytes(mappings), Bytes(), '\n') > allowed / 2;
}

}  // namespace

ir::Ref<Executable> ExecutableCache::Find(std::span<const uint64_t> key) {
  const auto [begin, end] = by_hash_.equal_range(ir::HashWords(key));
  for (auto it = begin; it != end; ++it) {
    if (std::ranges::equal(it->second->key.words(), key)) return Use(it->second);
  }
  return {};
}

ir::Ref<Executable> ExecutableCache::FindAdaptable(ir::Graph* graph) {
  const auto [begin, end] = by_structure_.equal_range(graph->structure());
  for (auto it = begin; it != end; ++it) {
    if (ir::AdaptTo(it->second->key.words(), graph)) return Use(it->second);
  }
  return {};
}

ir::Ref<Executable> ExecutableCache::Use(Entries::iterator entry) {
  entries_.splice(entries_.begin(), entries_, entry);
  return entry->executable;
}

void ExecutableCache::Insert(ir::KeptKey key, ir::Ref<Executable> executable) {
  const uint64_t hash = ir::HashWords(key.words());
  const uint64_t structure = ir::StructureHash(key.words());
  ++insertions_;
  words_ += key.words().size();
  unchecked_words_ += key.words().size();
  entries_.push_front({std::move(key), std::move(executable), hash, structure});
  by_hash_.emplace(hash, entries_.begin());
  by_structure_.emplace(structure, entries_.begin());
  while (entries_.size() > capacity_ || (words_ > most_words_ && size() > 1)) DropOldest();
  // A check costs up to 30 ms. Graphs of 4, 150 and 1,040 ops took 12, 102 and 1,328 mappings; an
  // op has two words in the key, or more.
  const bool has_mappings = most_words_ == std::numeric_limits<size_t>::max();
  if (!has_mappings || unchecked_words_ < kCheckMappingsAfter) return;
  unchecked_words_ = 0;
  if (MappingsAreScarce()) DropOlderHalf();
}

void ExecutableCache::DropOldest() {
  const auto oldest = std::prev(entries_.end());
  const auto erase = [&](Index& index, uint64_t hash) {
    const auto [begin, end] = index.equal_range(hash);
    index.erase(std::find_if(begin, end, [&](const auto& item) { return item.second == oldest; }));
  };
  erase(by_hash_, oldest->hash);
  erase(by_structure_, oldest->structure);
  words_ -= oldest->key.words().size();
  entries_.pop_back();
}

void ExecutableCache::DropOlderHalf() {
  for (size_t n = entries_.size() / 2; n > 0; --n) DropOldest();
}

void ExecutableCache::Clear() {
  by_hash_.clear();
  by_structure_.clear();
  entries_.clear();
  words_ = 0;
}

}  // namespace torch_xla_lite::runtime
