// What an interpreted run of a graph did: which memory each value had, and where in it.
//
//   Trace trace;
//   trace.AddLeaf(leaf);
//   trace.BeginCall(positions, operands, /*overwrites=*/false);
//   trace.EndCall(results);
//   trace.steps()[1].results[0].memory;
//
// Kernels decide by shapes and strides, so the next run of the graph does the same (plan.h).

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_TRACE_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_TRACE_H_

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/core/Storage.h>
#include <c10/util/DimVector.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/ir/key.h"

namespace torch_xla_lite::interpreter {

class Trace {
 public:
  static constexpr uint32_t kUndefined = std::numeric_limits<uint32_t>::max();

  struct Value {
    uint32_t memory = kUndefined;
    c10::ScalarType dtype = c10::ScalarType::Undefined;
    c10::DimVector sizes;
    c10::DimVector strides;
    int64_t offset = 0;  // In elements.

    // Whether a tensor is such a value of some memory; with `anywhere` at any place in it.
    bool Describes(const at::Tensor& tensor, bool anywhere = false) const;
  };
  struct Step {
    std::vector<Value> results;
    bool overwrites = false;  // Its results may be in the memory of its first operands.
  };

  void AddLeaf(const at::Tensor& leaf);
  // num_overwritten: how many of the first operands the call overwrites. If one of them is a leaf,
  // the results are noted as if they had memories of their own: who makes a plan decides what it
  // writes to.
  void BeginCall(std::span<const ir::Position> positions, std::span<const at::Tensor> operands,
                 size_t num_overwritten);
  void EndCall(std::span<const at::Tensor> results);

  // Whether all values are plain: elements in memory, without a change that is left to the reader.
  bool is_plain() const { return is_plain_; }
  // One for each step of the graph.
  const std::vector<Step>& steps() const { return steps_; }
  // The sizes of the memories, in bytes. Those of leaves are the leaves', in their order.
  const std::vector<size_t>& memories() const { return memories_; }

 private:
  void Add(const at::Tensor& tensor);

  std::vector<Step> steps_;
  std::vector<size_t> memories_;
  std::unordered_set<uint32_t> leaves_;  // Their memories.
  bool is_plain_ = true;
  // Those of the current call. They are held, so that no new memory has the same address.
  std::vector<std::pair<c10::Storage, uint32_t>> known_;
};

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_TRACE_H_
