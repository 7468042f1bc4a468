// A memory of a plan: the storage that its tensors share, which is elsewhere in each run.
//
//   Memory memory(bytes, &next);        // an address at which nothing is, until it is placed
//   at::Tensor tensor = memory.Tensor(value);
//   memory.Follow(&kernel, kernel.places());
//   memory.Place(data);                 // moves the tensors, and the operands of kernels

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_MEMORY_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_MEMORY_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "torch_xla_lite/csrc/interpreter/kept_kernel.h"
#include "torch_xla_lite/csrc/interpreter/trace.h"

namespace torch_xla_lite::interpreter {

class Memory {
 public:
  // Where the memory is.
  enum class Kind : uint8_t {
    kNone,   // Nowhere: another memory has its values.
    kLeaf,   // Outside of the graph.
    kArena,  // At an offset in the plan's block.
    kRoot,   // In a tensor that leaves the graph.
    kCall,   // In a result of a call of ATen.
    kView,   // At a place in another memory that varies.
  };

  // The first address of memories that have no place yet. No process has memory from there on; the
  // heap of a Python that is not position-independent, such as Debian's, begins at some megabytes.
  static constexpr uintptr_t kNowhere = uintptr_t{3} << 55;

  Memory(size_t bytes, uintptr_t* next);

  size_t bytes() const { return bytes_; }
  const c10::Storage& storage() const { return storage_; }
  // A tensor that is there.
  at::Tensor Tensor(const Trace::Value& value) const;
  // Before it is placed: `places` are those of a kernel's operands.
  void Follow(KeptKernel* kernel, std::span<const void* const> places);
  void Place(void* data);

  Kind kind = Kind::kNone;
  size_t offset = 0;  // In the block.
  // While a plan runs, the result of a call of ATen that is there.
  at::Tensor held;

 private:
  struct Operand {
    KeptKernel* kernel;
    size_t operand;
    size_t offset;
  };

  size_t bytes_;
  uintptr_t begin_;
  c10::Storage storage_;
  std::vector<Operand> operands_;
};

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_MEMORY_H_
