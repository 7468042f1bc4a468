// An LRU cache of executables, by the exact key of their graph.
//
//   ExecutableCache cache(1024);
//   Executable* hit = cache.Find(graph.key);      // nullptr: compile it
//   cache.Insert(graph.key, executable);
//
// Keys are compared word by word, so a hit is always the same graph. Not thread-safe.

#ifndef TORCH_XLA_LITE_CSRC_RUNTIME_EXECUTABLE_CACHE_H_
#define TORCH_XLA_LITE_CSRC_RUNTIME_EXECUTABLE_CACHE_H_

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "torch_xla_lite/csrc/runtime/executor.h"

namespace torch_xla_lite::runtime {

class ExecutableCache {
 public:
  explicit ExecutableCache(size_t capacity) : capacity_(capacity) {}

  ir::Ref<Executable> Find(std::span<const uint64_t> key);
  void Insert(std::vector<uint64_t> key, ir::Ref<Executable> executable);
  void Clear();
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    uint64_t hash;
    std::vector<uint64_t> key;
    ir::Ref<Executable> executable;
  };
  using Entries = std::list<Entry>;  // Most recently used first.

  const size_t capacity_;
  Entries entries_;
  std::unordered_multimap<uint64_t, Entries::iterator> by_hash_;
};

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_EXECUTABLE_CACHE_H_
