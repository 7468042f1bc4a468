// Places for arrays whose lifetimes are known, in one block of memory.
//
//   Arena arena;
//   size_t a = arena.Take(64), b = arena.Take(256);    // offsets
//   arena.Return(a, 64);
//   arena.Take(32);                                    // a
//   arena.size();                                      // bytes that the block needs

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_ARENA_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_ARENA_H_

#include <cstddef>
#include <map>

namespace torch_xla_lite::interpreter {

class Arena {
 public:
  // The first place that is large enough. Offsets have the alignment that torch gives arrays.
  size_t Take(size_t bytes);
  void Return(size_t offset, size_t bytes);
  size_t size() const { return size_; }

 private:
  size_t size_ = 0;
  std::map<size_t, size_t> free_;  // Offset -> bytes. No two of them touch each other.
};

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_ARENA_H_
