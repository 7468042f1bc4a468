// A call of a graph whose tensors stay as they are, and whose numbers vary.
//
//   for (const Part& part : KeptCall::PartsOf(aten_call, operands)) {
//     auto call = KeptCall::Keep(part, scalar_dtypes, results[part.output]);
//     call->Run(node.scalars());
//   }

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_KEPT_CALL_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_KEPT_CALL_H_

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "torch_xla_lite/csrc/aten/aten_call.h"
#include "torch_xla_lite/csrc/interpreter/kept_kernel.h"
#include "torch_xla_lite/csrc/interpreter/kept_parts.h"

namespace torch_xla_lite::interpreter {

class KeptCall {
 public:
  // The calls (kept_parts.h) of which a call consists; empty if they cannot be kept.
  static std::vector<Part> PartsOf(const aten::AtenCall& call,
                                   std::span<const at::Tensor> operands);
  // nullptr if there is no kernel for it (kept_kernel.h), or the kernel would have to convert
  // operands. `scalar_dtypes` are those of the node's scalars.
  static std::unique_ptr<KeptCall> Keep(const Part& part,
                                        std::span<const c10::ScalarType> scalar_dtypes,
                                        const at::Tensor& result);

  KeptKernel& kernel() { return *kernel_; }
  // `scalars` are those of the node.
  void Run(std::span<const uint64_t> scalars);

 private:
  struct Number {
    size_t argument;
    size_t scalar;
    c10::ScalarType stored;  // Double, Long or Bool.
    at::Tensor tensor;       // Undefined for a number that is none.
  };

  static std::optional<Number> NumberOf(const Part::Number& number, c10::ScalarType dtype,
                                        c10::ScalarType common);

  std::unique_ptr<KeptKernel> kernel_;
  std::vector<Number> numbers_;
};

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_KEPT_CALL_H_
