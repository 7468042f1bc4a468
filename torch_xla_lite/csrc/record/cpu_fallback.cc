#include "torch_xla_lite/csrc/record/cpu_fallback.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <string_view>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/aten/undeclared_writes.h"
#include "torch_xla_lite/csrc/infer/infer.h"
#include "torch_xla_lite/csrc/infer/quantized.h"
#include "torch_xla_lite/csrc/ir/mutex.h"
#include "torch_xla_lite/csrc/ir/thread_annotations.h"
#include "torch_xla_lite/csrc/ops/call.h"
#include "torch_xla_lite/csrc/ops/map_tensors.h"
#include "torch_xla_lite/csrc/ops/op_info.h"
#include "torch_xla_lite/csrc/record/layout.h"
#include "torch_xla_lite/csrc/record/transfer.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"
#include "torch_xla_lite/csrc/tensor/tensor_impl.h"

namespace torch_xla_lite::record {
namespace {

// Never destroyed: threads of other libraries may still call ops while the process exits.
ir::Mutex& counts_mutex = *new ir::Mutex;
auto& counts LITE_GUARDED_BY(counts_mutex) = *new std::map<std::string, uint64_t>;

at::Tensor ToCpu(const at::Tensor& tensor) {
  return tensor.device().is_privateuseone() ? Download(tensor) : tensor;
}

at::Tensor ToJax(const at::Tensor& tensor, std::string_view op) {
  infer::CheckNotQuantized(tensor.scalar_type(), op);
  if (!tensor.device().is_cpu()) return tensor;
  const at::Tensor uploaded = Upload(tensor);
  // Other strides than row-major ones are documented for some results, as of nonzero.
  return WithStrides(uploaded, StridesFor(tensor, at::MemoryFormat::Preserve));
}

// Copies what a CPU kernel wrote to the CPU copies of arguments back to the arguments.
void WriteBack(const c10::IValue& argument, const c10::IValue& on_cpu) {
  std::vector<at::Tensor> written;
  ops::ForEachTensor(on_cpu, [&](const at::Tensor& tensor) { written.push_back(tensor); });
  size_t i = 0;
  ops::ForEachTensor(argument, [&](const at::Tensor& tensor) {
    const at::Tensor& source = written[i++];
    if (!tensor.defined() || !tensor.device().is_privateuseone()) return;
    if (tensor.sizes() != source.sizes()) tensor.resize_(source.sizes());
    tensor.copy_(source);
  });
}

}  // namespace

void RunOnCpu(const ops::OpInfo& info, torch::jit::Stack* stack) {
  const torch::jit::Stack arguments = torch::jit::pop(*stack, info.arguments.size());
  // The kernel would raise the error of an invalid call.
  if (runtime::Runtime::Get().RefusesReads()) infer::CheckCall(info, arguments);
  torch::jit::Stack on_cpu;
  try {
    for (const c10::IValue& argument : arguments) {
      on_cpu.push_back(ops::MapArgument(argument, c10::Device(c10::kCPU), ToCpu));
    }
  } catch (const runtime::RefusedRead&) {
    throw runtime::RefusedRead(info.name);
  }
  std::vector<c10::IValue> mutated;
  for (const int i : info.mutated) mutated.push_back(on_cpu[i]);
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    aten::IsForeign(info.op) ? aten::CallChecked(info.op, &on_cpu) : info.op.callBoxed(&on_cpu);
  }
  // Counted only if it succeeded: a call that the kernel refused did not run.
  CountFallback(info.name);
  for (size_t i = 0; i < info.mutated.size(); ++i) {
    WriteBack(arguments[info.mutated[i]], mutated[i]);
  }
  const auto to_jax = [&](const at::Tensor& tensor) { return ToJax(tensor, info.name); };
  for (size_t i = 0; i < on_cpu.size(); ++i) {
    const int source = info.results[i];
    stack->push_back(source >= 0 ? arguments[source]
                                 : ops::MapArgument(on_cpu[i], c10::Device(c10::kCPU), to_jax));
  }
  if (info.layout >= 0) ApplyLayout(arguments, info.layout, &stack->back());
}

std::map<std::string, uint64_t> Fallbacks() {
  const ir::MutexLock lock(&counts_mutex);
  return counts;
}

void CountFallback(const std::string& op) {
  const ir::MutexLock lock(&counts_mutex);
  ++counts[op];
}

void ResetFallbacks() {
  const ir::MutexLock lock(&counts_mutex);
  counts.clear();
}

}  // namespace torch_xla_lite::record
