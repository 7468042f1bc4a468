// Calls ATen's CPU kernel for a recorded call: from the interpreter, inside XLA programs (ffi), and
// in host callbacks (python).
//
// An AtenCall is constructed once per call site from what does not change (op, constant arguments,
// which outputs exist) and is run whenever the graph runs.
//
//   AtenCall call("aten::topk", words, /*defined=*/"11");
//   call.Run(operands, scalars, outputs);    // writes the results into `outputs`
//
// If the op has an out= kernel for the CPU, it writes its results into `outputs`; otherwise they
// are copied there. The interpreter, whose results are new tensors, does the same in steps:
//
//   torch::jit::Stack stack = call.Arguments(operands, scalars);
//   call.Check(stack);
//   call.Call(&stack);
//   std::vector<at::Tensor> results = AtenCall::Results(stack);
//   call.CheckResult(results[0], 0, sizes, dtype);
//
// Operands are never written to. Kernels of other libraries are checked for what torch's own are
// known to do: they give the dtypes of their fake function, and, until a run has passed, write to
// nothing that their schema does not declare. Thread-safe: one program may run on several threads
// at once.

#ifndef TORCH_XLA_LITE_CSRC_ATEN_ATEN_CALL_H_
#define TORCH_XLA_LITE_CSRC_ATEN_ATEN_CALL_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "torch_xla_lite/csrc/aten/conditions.h"
#include "torch_xla_lite/csrc/ops/decode.h"

namespace torch_xla_lite::aten {

// Thrown when a kernel gives other results than the graph expects.
struct UnexpectedResults : std::runtime_error {
  using runtime_error::runtime_error;
};

class AtenCall {
 public:
  // `words` are the arguments as in ops/words.h. Raises if they do not match the op's schema.
  AtenCall(const c10::OperatorHandle& op, std::span<const uint64_t> words,
           ops::CallPlan::Rest rest);

  // For Run(). `op` is a full name such as "aten::add.Tensor"; `defined` has one character per
  // output, '1' where the op returns a tensor and '0' where torch leaves the output undefined.
  // Raises if the op is unknown or random, too.
  AtenCall(std::string_view op, std::span<const uint64_t> words, std::string_view defined);

  const c10::OperatorHandle& op() const { return op_; }
  const ops::CallPlan& plan() const { return plan_; }
  void BorrowNumbers(c10::ScalarType dtype) { plan_.BorrowNumbers(dtype); }

  // Whether the kernel may be called without Check, Arguments and CheckResult.
  bool is_plain() const { return condition_ == nullptr && written_.empty() && is_new_ == nullptr; }

  // Calls the kernel. `outputs` are the defined ones in order, list outputs flattened. Raises what
  // the kernel raises, and what Check() and CheckResult() do.
  void Run(std::span<const at::Tensor> operands, std::span<const ops::ScalarView> scalars,
           std::span<const at::Tensor> outputs) const;

  // The arguments. Those that the kernel writes to (batch norm, its running statistics) are copies.
  torch::jit::Stack Arguments(std::span<const at::Tensor> operands,
                              std::span<const ops::ScalarView> scalars) const;

  // Raises for arguments with which the kernel would read or write other memory.
  void Check(const torch::jit::Stack& arguments) const;

  // Calls the kernel with the arguments on the stack.
  void Call(torch::jit::Stack* stack) const;

  // The tensors that a kernel returned, those in lists, too. A number is no value of a graph, and
  // counts as an undefined tensor.
  static std::vector<at::Tensor> Results(const torch::jit::Stack& returned);

  // Throws UnexpectedResults unless result `index` has these sizes, and this dtype, or, of torch's
  // kernels, values that `dtype` can have.
  void CheckResult(const at::Tensor& result, size_t index, at::IntArrayRef sizes,
                   c10::ScalarType dtype) const;

 private:
  void Store(const torch::jit::Stack& returned, std::span<const at::Tensor> outputs) const;

  c10::OperatorHandle op_;
  ops::CallPlan plan_;
  Condition condition_;
  std::vector<size_t> written_;  // Arguments that the kernel writes to.
  std::string defined_;
  std::optional<c10::OperatorHandle> out_op_;
  // Whether no run of the kernel has been checked yet; only of an op of another library.
  std::shared_ptr<std::atomic<bool>> is_new_;
};

}  // namespace torch_xla_lite::aten

#endif  // TORCH_XLA_LITE_CSRC_ATEN_ATEN_CALL_H_
