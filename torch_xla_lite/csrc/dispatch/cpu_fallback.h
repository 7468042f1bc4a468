// Ops that cannot be recorded run at once, on the CPU.
//
// Their results' shapes depend on data (nonzero), they give something that is no tensor (equal), or
// they are wrong and the CPU kernel will say so in the words that users know. Everything pending
// that they need is computed first.
//
//   RunOnCpu(info, stack);      // as the op itself: arguments off the stack, results onto it

#ifndef TORCH_XLA_LITE_CSRC_DISPATCH_CPU_FALLBACK_H_
#define TORCH_XLA_LITE_CSRC_DISPATCH_CPU_FALLBACK_H_

#include <ATen/core/stack.h>

#include <cstdint>
#include <map>
#include <string>

#include "torch_xla_lite/csrc/dispatch/op_info.h"

namespace torch_xla_lite::dispatch {

void RunOnCpu(const OpInfo& info, torch::jit::Stack* stack);

// How often each op ran outside XLA since the last reset: here, or as an ATen kernel inside a
// graph.
std::map<std::string, uint64_t> Fallbacks();
void CountFallback(const std::string& op);
void ResetFallbacks();

}  // namespace torch_xla_lite::dispatch

#endif  // TORCH_XLA_LITE_CSRC_DISPATCH_CPU_FALLBACK_H_
