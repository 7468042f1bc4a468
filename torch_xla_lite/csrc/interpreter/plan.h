// A plan: how a graph that was interpreted runs again, without dispatcher and without allocations.
//
// A step has a kept kernel (kept_kernel.h), or is the call of ATen that the interpreter makes. What
// does not leave the graph has a place in one block (arena.h); views are nothing but tensors that
// know where they are. Runs give the bits that interpreted runs give: the kernels, shapes, strides
// and what is overwritten are those of the run that was traced (trace.h).
//
//   auto plan = Plan::Make(graph, trace, /*keeps=*/[](const ir::Signature&) { return true; });
//   std::vector<at::Tensor> roots = plan->Run(graph, leaves, run_call);
//
// A plan refers to the signatures of its graph, which its owner keeps. Not thread-safe.

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_PLAN_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_PLAN_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/ScalarType.h>
#include <c10/util/FunctionRef.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "torch_xla_lite/csrc/interpreter/kept_call.h"
#include "torch_xla_lite/csrc/interpreter/memory.h"
#include "torch_xla_lite/csrc/interpreter/trace.h"
#include "torch_xla_lite/csrc/ir/key.h"
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

  // keeps: whether calls of a signature may have a kept kernel.
  Plan(const ir::Description& graph, const Trace& trace,
       c10::function_ref<bool(const ir::Signature&)> keeps);

  // Whether a run takes so little time that Python's lock may be held meanwhile.
  bool is_short() const;

  // Whether the program's settings are those of the run that was traced.
  bool Holds() const;

  // The roots of the graph. Each is dense and has its memory for itself. `leaves` are the places of
  // their data, which is only read. Raises what calls raise, or dispatch::UnexpectedResults where
  // they do something else than they did; then nothing has changed.
  std::vector<at::Tensor> Run(const ir::Graph& graph, std::span<void* const> leaves, RunCall call);

 private:
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
  };

  void MakeTensors(const Trace& trace);
  void AddStep(const ir::Description& graph, const Trace& trace, uint32_t node,
               c10::function_ref<bool(const ir::Signature&)> keeps);
  void AddRoots(const ir::Description& graph, const Trace& trace);
  void PlaceInArena(const ir::Description& graph, const Trace& trace);
  void Call(const Step& step, const ir::Node& node, RunCall call);
  at::Tensor Result(const Root& root, at::Tensor placed);

  const c10::ScalarType default_dtype_;
  std::vector<Memory> memories_;
  // Of each step of the graph, its results.
  std::vector<std::vector<at::Tensor>> tensors_;
  std::vector<Step> steps_;
  std::vector<Root> roots_;
  size_t arena_bytes_ = 0;
  void* arena_ = nullptr;
  // The block of a plan that needs little; others take one for each run.
  c10::DataPtr own_arena_;
};

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_PLAN_H_
