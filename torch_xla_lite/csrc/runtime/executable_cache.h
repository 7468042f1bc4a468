// An LRU cache of executables, by the exact key of their graph. One of programs also becomes
// smaller when the process runs out of memory mappings.
//
//   ExecutableCache cache(1024);
//   ir::Ref<Executable> hit = cache.Find(graph.key);
//   if (!hit) hit = cache.FindAdaptable(&graph);    // of a graph that differs only in donation
//   if (!hit) cache.Insert(ir::KeptKey(graph.key), compiled);
//
// Keys are compared word by word, so a hit is always the same graph. Not thread-safe.

#ifndef TORCH_XLA_LITE_CSRC_RUNTIME_EXECUTABLE_CACHE_H_
#define TORCH_XLA_LITE_CSRC_RUNTIME_EXECUTABLE_CACHE_H_

#include <cstdint>
#include <limits>
#include <list>
#include <span>
#include <unordered_map>

#include "torch_xla_lite/csrc/ir/key.h"
#include "torch_xla_lite/csrc/runtime/executor.h"

namespace torch_xla_lite::ir {
struct Graph;
}  // namespace torch_xla_lite::ir

namespace torch_xla_lite::runtime {

class ExecutableCache {
 public:
  // most_words: of all keys together. Where that is given, nothing has mappings.
  explicit ExecutableCache(size_t capacity, size_t most_words = std::numeric_limits<size_t>::max())
      : capacity_(capacity), most_words_(most_words) {}

  ir::Ref<Executable> Find(std::span<const uint64_t> key);
  // An executable of the same structure that can run the graph, which is adapted to it: the program
  // may keep a reference to an old state in one step, and drop it in the next.
  ir::Ref<Executable> FindAdaptable(ir::Graph* graph);
  void Insert(ir::KeptKey key, ir::Ref<Executable> executable);
  // Whether what has a key of so many words would take the place of something else.
  bool IsFull(size_t words) const { return size() == capacity_ || words_ + words > most_words_; }
  // The least recently used one, of at least one.
  Executable& oldest() const { return *entries_.back().executable; }
  // Drops the least recently used half, rounded down.
  void DropOlderHalf();
  void Clear();
  size_t size() const { return entries_.size(); }
  // How often something was inserted.
  uint64_t insertions() const { return insertions_; }

 private:
  struct Entry {
    ir::KeptKey key;
    ir::Ref<Executable> executable;
    uint64_t hash;
    uint64_t structure;
  };
  using Entries = std::list<Entry>;  // Most recently used first.
  using Index = std::unordered_multimap<uint64_t, Entries::iterator>;

  ir::Ref<Executable> Use(Entries::iterator entry);
  void DropOldest();

  static constexpr size_t kCheckMappingsAfter = 4096;  // Words of keys.

  const size_t capacity_;
  const size_t most_words_;
  size_t words_ = 0;
  uint64_t insertions_ = 0;
  size_t unchecked_words_ = 0;
  Entries entries_;
  Index by_hash_;
  Index by_structure_;
};

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_EXECUTABLE_CACHE_H_
