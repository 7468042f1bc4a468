// Calls an ATen CPU kernel on buffers that XLA owns.
//
// Ops without a lowering to XLA run inside an XLA program as ATen kernels on CPU memory. An
// AtenCall is constructed once per call site from what does not change (op, constant arguments,
// which outputs exist) and is run whenever the program runs.
//
//   AtenCall call("aten::topk", words, /*defined=*/"11");
//   call.Run(operands, scalars, outputs);    // writes the results into `outputs`
//
// If the op has an out= kernel for the CPU, it writes its results into `outputs`; otherwise they
// are copied there. Operands are never written to: if the kernel would do that (batch norm, to its
// running statistics), it gets copies. Thread-safe: Run() is const, and one program may run
// on several threads at once.

#ifndef TORCH_XLA_LITE_CSRC_FFI_ATEN_CALL_H_
#define TORCH_XLA_LITE_CSRC_FFI_ATEN_CALL_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "torch_xla_lite/csrc/ops/conditions.h"
#include "torch_xla_lite/csrc/ops/decode.h"

namespace torch_xla_lite::ffi {

class AtenCall {
 public:
  // `op` is a full name such as "aten::add.Tensor"; `words` are its arguments as in
  // ops/words.h; `defined` has one character per output, '1' where the op returns a tensor and
  // '0' where torch leaves the output undefined. Raises if the op is unknown or random, or the
  // words do not match its schema.
  AtenCall(std::string_view op, std::span<const uint64_t> words, std::string_view defined);

  size_t operand_count() const { return plan_.operand_count(); }
  size_t scalar_count() const { return plan_.scalar_count(); }

  // Calls the kernel. `outputs` are the defined ones in order, list outputs flattened. Raises what
  // the kernel raises, and for arguments with which it would read or write other memory.
  void Run(std::span<const at::Tensor> operands, std::span<const dispatch::ScalarView> scalars,
           std::span<const at::Tensor> outputs) const;

  const std::string& name() const { return name_; }

 private:
  void RunInto(torch::jit::Stack* stack, std::span<const at::Tensor> outputs) const;
  void RunAndCopy(torch::jit::Stack* stack, std::span<const at::Tensor> outputs) const;

  std::string name_;
  c10::OperatorHandle op_;
  std::optional<c10::OperatorHandle> out_op_;
  dispatch::CallPlan plan_;
  std::string defined_;
  bool copy_operands_;
  dispatch::Condition condition_;
};

}  // namespace torch_xla_lite::ffi

#endif  // TORCH_XLA_LITE_CSRC_FFI_ATEN_CALL_H_
