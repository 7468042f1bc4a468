// A plan: how a graph that was interpreted runs again, without dispatcher and without allocations.
//
// A step has a kept kernel (kept_kernel.h), or is the call of ATen that the interpreter makes. What
// does not leave the graph has a place in one block (arena.h); views are nothing but tensors that
// know where they are. Runs give the bits that interpreted runs give: the kernels, shapes and
// strides are those of the run that was traced (trace.h).
//
//   auto plan = MakePlan(graph, trace, keeps);    // plan_maker.h
//   std::vector<at::Tensor> roots = plan->Run(graph, leaves, run_call);
//
// A plan refers to the signatures of its graph, which its owner keeps. Not thread-safe.

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_PLAN_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_PLAN_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/util/FunctionRef.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "torch_xla_lite/csrc/interpreter/kept_call.h"
#include "torch_xla_lite/csrc/interpreter/memory.h"
#include "torch_xla_lite/csrc/interpreter/trace.h"
#include "torch_xla_lite/csrc/ir/node.h"

namespace torch_xla_lite::ir {
struct Graph;
}  // namespace torch_xla_lite::ir

namespace torch_xla_lite::interpreter {

class Plan {
 public:
  // Makes a call as the interpreter does.
  using RunCall = c10::function_ref<std::vector<at::Tensor>(
      const ir::Node& call, std::vector<at::Tensor> operands, bool may_overwrite)>;

  struct Leaf {
    void* data;
    at::Tensor tensor;  // Of one that is overwritten: the only tensor in its memory.
  };

  // Whether a run takes so little time that Python's lock may be held meanwhile.
  bool is_short() const;

  // Whether it writes to the memory of a leaf, which is donated.
  bool Overwrites(size_t leaf) const { return overwritten_[leaf]; }

  // The roots of the graph. Each is dense and has its memory for itself, which may be that of a
  // leaf that is overwritten. Raises what calls raise, or aten::UnexpectedResults where they do
  // something else than they did; then nothing has changed, unless has_written().
  std::vector<at::Tensor> Run(const ir::Graph& graph, std::span<const Leaf> leaves, RunCall call);

  // Whether the last run has begun to write to leaves. Nothing after that is known to fail; if it
  // does, the graph cannot be computed any more.
  bool has_written() const { return has_written_; }

 private:
  friend class PlanMaker;

  struct Step {
    uint32_t node = 0;
    std::unique_ptr<KeptCall> kept;  // Or:
    bool overwrites = false;
    std::vector<at::Tensor> operands;
    std::vector<Trace::Value> results;
    std::vector<uint32_t> roots;  // That it writes first.
    // Memories of calls of ATen that are not needed any more.
    std::vector<uint32_t> releases;
  };
  struct Root {
    Trace::Value value;
    at::Tensor tensor;
    bool owns_memory = false;
    std::optional<size_t> leaf;  // In whose memory it is.
  };

  Plan() = default;
  void SetArena(size_t bytes);
  void Call(const Step& step, const ir::Node& node, RunCall call);
  bool Moves(const Trace::Value& value, const at::Tensor& result) const;
  at::Tensor Result(const Root& root);

  std::vector<Memory> memories_;
  std::vector<Step> steps_;
  std::vector<Root> roots_;
  std::vector<bool> overwritten_;      // Of the leaves.
  const Step* first_write_ = nullptr;  // To a leaf.
  bool has_written_ = false;
  size_t arena_bytes_ = 0;
  void* arena_ = nullptr;
  // The block of a plan that needs little; others take one for each run.
  c10::DataPtr own_arena_;
};

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_PLAN_H_
