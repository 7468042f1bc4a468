// One recorded call, or write through a view, as a call of ATen's CPU kernel.
//
//   CpuCall call(node.signature());
//   if (call.is_possible()) results = call.Run({a, b}, node.scalars());
//
// Operands are never written to. A result may share memory with an operand, and need not be dense:
// only its values count. Thread-safe after construction: Run() is const.

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_CPU_CALL_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_CPU_CALL_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "torch_xla_lite/csrc/dispatch/decode.h"
#include "torch_xla_lite/csrc/dispatch/op_info.h"
#include "torch_xla_lite/csrc/interpreter/draw.h"
#include "torch_xla_lite/csrc/ir/signature.h"

namespace torch_xla_lite::interpreter {

// The kernel gives something else than what the graph expects.
struct OtherResults : std::runtime_error {
  using runtime_error::runtime_error;
};

class CpuCall {
 public:
  explicit CpuCall(const ir::Signature& signature);

  // Whether there is a kernel that gives what the op's lowering gives. Not all random numbers can
  // be those of jax, the strides of torch's views are unknown to the graph, and kernels read the
  // default dtype of now, not of the recording.
  bool is_possible() const;

  // Gives one tensor for each output of the signature, undefined where that has none. `scalars` are
  // those of the node. Raises what the kernel raises, or OtherResults.
  std::vector<at::Tensor> Run(std::vector<at::Tensor> operands,
                              std::span<const uint64_t> scalars) const;

 private:
  bool HasKernel() const;
  std::vector<at::Tensor> Results(std::span<const at::Tensor> operands,
                                  std::span<const uint64_t> scalars) const;
  void SetEndOfSlice(torch::jit::Stack* stack) const;
  at::Tensor Checked(at::Tensor result, size_t output) const;

  const ir::Signature& signature_;
  std::optional<c10::OperatorHandle> op_;
  // The result of a view that is written through.
  std::optional<size_t> written_;
  std::optional<dispatch::CallPlan> plan_;
  bool is_seeded_ = false;
  void (*kernel_)(torch::jit::Stack*) = nullptr;           // instead of torch's
  bool (*condition_)(const torch::jit::Stack&) = nullptr;  // what torch's takes for granted
  Draw draw_ = nullptr;                                    // of a random op
  const dispatch::IndexArguments* index_ = nullptr;
  bool needs_dense_operand_ = false;
  bool takes_any_strides_ = false;
  bool is_reshape_ = false;
};

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_CPU_CALL_H_
