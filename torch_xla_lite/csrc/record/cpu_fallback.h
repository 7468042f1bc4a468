// Runs ops that cannot be recorded, immediately and on the CPU.
//
// These are ops whose result shapes depend on data (nonzero), ops whose result is not a tensor
// (equal), and invalid calls, for which the CPU kernel raises the error that users know. Pending
// operands are computed first.
//
//   RunOnCpu(info, stack);      // pops the arguments from the stack and pushes the results

#ifndef TORCH_XLA_LITE_CSRC_RECORD_CPU_FALLBACK_H_
#define TORCH_XLA_LITE_CSRC_RECORD_CPU_FALLBACK_H_

#include <cstdint>
#include <map>
#include <string>

#include "torch_xla_lite/csrc/ops/stack.h"

namespace torch_xla_lite::ops {
struct OpInfo;
}  // namespace torch_xla_lite::ops

namespace torch_xla_lite::record {

void RunOnCpu(const ops::OpInfo& info, torch::jit::Stack* stack);

// How often each op was not run by XLA since the last reset: here, or as an ATen kernel inside a
// graph.
std::map<std::string, uint64_t> Fallbacks();
void CountFallback(const std::string& op);
void ResetFallbacks();

}  // namespace torch_xla_lite::record

#endif  // TORCH_XLA_LITE_CSRC_RECORD_CPU_FALLBACK_H_
