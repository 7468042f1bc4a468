// Runs a recorded call, or a write through a view, by ATen's CPU kernel.
//
//   CpuCall call(node.signature());
//   if (call.is_possible()) results = call.Run({a, b}, node.scalars());
//
// A result may share memory with an operand, and need not be dense: only its values count.
// Run() is thread-safe after construction.

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_CPU_CALL_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_CPU_CALL_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "torch_xla_lite/csrc/aten/aten_call.h"
#include "torch_xla_lite/csrc/interpreter/completion.h"
#include "torch_xla_lite/csrc/interpreter/draw.h"
#include "torch_xla_lite/csrc/interpreter/kept_call.h"
#include "torch_xla_lite/csrc/interpreter/wider_dtypes.h"
#include "torch_xla_lite/csrc/ir/key.h"
#include "torch_xla_lite/csrc/ir/signature.h"
#include "torch_xla_lite/csrc/ops/op_info.h"

namespace torch_xla_lite::interpreter {

// Whether elements may share memory.
bool MayOverlap(const at::Tensor& view);

class CpuCall final : public ir::Signature::Derived {
 public:
  explicit CpuCall(const ir::Signature& signature);

  // That of a signature, which keeps it.
  static const CpuCall& Of(const ir::Signature& signature);

  // Whether there is a kernel that gives what the op's lowering gives. Not all random numbers can
  // be those of jax, the strides of torch's views are unknown to the graph, and kernels read the
  // current default dtype, not the one at recording time.
  bool is_possible() const;

  // Whether its results are random.
  bool draws() const { return draws_; }

  // Makes it impossible: the kernel gives something else. Calls of the op with other shapes or
  // options are not affected.
  void GiveUp() const { has_given_up_ = true; }

  // The dtypes in which the kernel runs; the first run finds them. It is the same for calls of the
  // op with these dtypes.
  Width width() const { return width_; }
  void set_width(Width width) const { width_ = width; }
  bool has_run() const { return has_run_; }

  // Whether its results are views of an operand, and it writes to none.
  bool is_view() const;

  // Whether something may be wrong with its operands that was not known when it was recorded.
  bool may_fail() const;

  // Whether the results of a step are views at places that vary.
  static bool Moves(const ir::Step& step) {
    return step.num_scalars > 0 && Of(*step.signature).is_view();
  }

  // Whether Run(), with `may_overwrite` again on its own result, gives that result.
  bool rewrites() const {
    return is_possible() &&
           (signature_.written || (in_place_ && rewrites_ && width_ == Width::kOwn));
  }

  // The calls of kept kernels that do the same for tensors that stay where they are and as they
  // are; empty if Run() does more than that.
  std::vector<Part> KeptParts(std::span<const at::Tensor> operands) const;
  // nullptr if there is no kept kernel for one of them.
  std::unique_ptr<KeptCall> Keep(const Part& part, const at::Tensor& result) const {
    return KeptCall::Keep(part, scalar_dtypes_, result);
  }

  // How many of its first operands it may overwrite: none, one, or all of a list.
  size_t num_overwritten() const;

  // Returns one tensor for each output of the signature, undefined where the signature has none.
  // `scalars` are those of the node. may_overwrite: whether the call is the last that needs the
  // memory of the first operands, so that the results may be there; no other is written to.
  // Raises what the kernel raises, or aten::UnexpectedResults, and then has written to no
  // operand.
  std::vector<at::Tensor> Run(std::span<at::Tensor> operands, std::span<const uint64_t> scalars,
                              bool may_overwrite) const;

 private:
  // In which the kernel gets an operand, if it does not take any strides.
  c10::MemoryFormat FormatOf(const at::Tensor& operand) const;
  bool HasKernel(const c10::OperatorHandle& op) const;
  std::vector<at::Tensor> Results(std::span<const at::Tensor> operands,
                                  std::span<const uint64_t> scalars, bool may_overwrite) const;
  std::vector<at::Tensor> ResultsOf(Width width, std::span<const at::Tensor> operands,
                                    std::span<const uint64_t> scalars, bool may_overwrite) const;
  at::Tensor Written(std::span<at::Tensor> operands, std::span<const uint64_t> scalars,
                     bool may_overwrite) const;
  bool FitResults(const c10::IValue& argument, std::span<const at::Tensor> operands) const;
  void SetEndOfSlice(torch::jit::Stack* stack) const;
  void Narrow(Width width, std::span<at::Tensor> results) const;
  at::Tensor Checked(at::Tensor result, size_t output) const;

  const ir::Signature& signature_;
  // Nothing if there is no kernel.
  std::optional<aten::AtenCall> call_;
  // The same op in place, if torch has it.
  std::optional<c10::OperatorHandle> in_place_;
  bool is_seeded_ = false;
  bool draws_ = false;
  // Guarded by the sync lock, as all that is derived.
  mutable bool has_given_up_ = false;
  mutable Width width_ = Width::kOwn;
  mutable bool has_run_ = false;
  // Replaces torch's kernel.
  void (*kernel_)(torch::jit::Stack*) = nullptr;
  Completion complete_ = nullptr;
  // Draws the numbers of a random op.
  Draw draw_ = nullptr;
  // Of the scalars, as the nodes have them. The kernel may take them in others.
  std::vector<c10::ScalarType> scalar_dtypes_;
  std::optional<ops::IndexArguments> index_;
  bool needs_dense_operand_ = false;
  bool rewrites_ = false;
  bool is_pointwise_ = false;
  bool takes_any_strides_ = false;
  bool takes_channels_last_ = false;
  bool is_reshape_ = false;
  bool rounds_numbers_ = false;
  bool rounds_operands_ = false;
  bool is_lowered_ = false;
};

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_CPU_CALL_H_
