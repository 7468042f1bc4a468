#include "torch_xla_lite/csrc/record/record.h"

#include <ATen/core/Generator.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/AutogradState.h>
#include <c10/core/TensorOptions.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/device/generator.h"
#include "torch_xla_lite/csrc/ir/mutex.h"
#include "torch_xla_lite/csrc/ir/record_lock.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/ir/thread_annotations.h"
#include "torch_xla_lite/csrc/ops/call.h"
#include "torch_xla_lite/csrc/ops/op_info.h"
#include "torch_xla_lite/csrc/ops/op_name.h"
#include "torch_xla_lite/csrc/record/cpu_fallback.h"
#include "torch_xla_lite/csrc/record/judge.h"
#include "torch_xla_lite/csrc/record/layout.h"
#include "torch_xla_lite/csrc/record/merged_views.h"
#include "torch_xla_lite/csrc/record/transfer.h"
#include "torch_xla_lite/csrc/runtime/pending_limit.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"
#include "torch_xla_lite/csrc/tensor/op_signature.h"
#include "torch_xla_lite/csrc/tensor/tensor_impl.h"

namespace torch_xla_lite::record {
namespace {

using runtime::RecordScope;
using runtime::Runtime;
using tensor::OpSignature;
using tensor::ViewStep;
using tensor::XTensorImpl;
using torch::jit::Stack;
using ResultList = RecordKernel::NewResults;

ir::Mutex registered_mutex;

ops::RegisteredOps& GetRegisteredOps() LITE_REQUIRES(registered_mutex) {
  static auto* registered = new ops::RegisteredOps;
  return *registered;
}

std::atomic<SourceHook> source_hook = nullptr;

// Makes backward() record on the thread that calls it instead of autograd's thread for the device.
// Recording never waits for the device, so a separate thread gains nothing: on a busy machine the
// two thread switches cost more than the recording. It also tells whose graph an op belongs to.
// torch keeps the setting for each thread and for all devices. It is set with each op, because
// inference_mode, which the first op may be in, restores what it was.
void RunBackwardOnThisThread() {
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
}

// Index tensors may be on the CPU, as on CUDA; users must move all others.
void UploadIndices(size_t num_arguments, Stack* stack) {
  for (size_t i = stack->size() - num_arguments; i < stack->size(); ++i) {
    c10::IValue& argument = (*stack)[i];
    if (!argument.isList()) continue;
    // A copy: the caller of a C++ function shares its list.
    auto items = argument.toList().copy();
    for (size_t k = 0; k < items.size(); ++k) {
      const c10::IValue item = items.get(k);
      if (!item.isTensor() || !item.toTensor().defined()) continue;
      if (item.toTensor().device().is_cpu()) items.set(k, Upload(item.toTensor()));
    }
    argument = std::move(items);
  }
}

void PushSeed(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments, ops::Call* call) {
  std::optional<at::Generator> generator;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (info.arguments[i].role != ops::OpInfo::Role::kGenerator || arguments[i].isNone()) continue;
    generator = arguments[i].toGenerator();
  }
  const device::RngState state = device::CheckJaxGenerator(generator).NextSeedOffset();
  call->scalars.push_back(state.seed);
  call->scalars.push_back(state.offset);
}

ir::Ref<ir::Node> MakeNode(const OpSignature& signature, const ops::Call& call)
    LITE_REQUIRES(ir::record_lock) {
  c10::SmallVector<ir::Value, 8> operands;
  for (XTensorImpl* operand : call.operands) operands.push_back(operand->Read());
  auto node = ir::Node::Create(&signature, {operands.data(), operands.size()},
                               {call.scalars.data(), call.scalars.size()});
  node->source = call.source;
  return node;
}

at::Tensor MakeOutput(const ir::Ref<ir::Node>& node, uint32_t output)
    LITE_REQUIRES(ir::record_lock) {
  if (node->signature().outputs[output] == nullptr) return {};
  return at::Tensor(tensor::MakeTensor({node, output}));
}

// The offset of `source` in elements of a view, which may have another dtype.
int64_t OffsetFor(const XTensorImpl& source, const ir::Shape* view) {
  const int64_t offset = source.storage_offset();
  if (offset == 0 || view->dtype() == source.shape()->dtype()) return offset;
  const auto bytes = offset * static_cast<int64_t>(source.itemsize());
  const auto size = static_cast<int64_t>(c10::elementSize(tensor::ScalarTypeOf(view)));
  TORCH_CHECK(bytes % size == 0, "a view of elements of ", size, " bytes cannot begin ", bytes,
              " bytes after the start of its storage; its storage_offset() must be divisible.\n",
              "Copy the tensor first:  tensor.clone()");
  return bytes / size;
}

at::Tensor MakeView(const OpSignature& signature, const ops::Call& call, uint32_t output)
    LITE_REQUIRES(ir::record_lock) {
  const XTensorImpl& source = *call.operands[0];
  auto step = MergedStep(source.step(), signature, output,
                         ViewStep::Scalars(call.scalars.begin(), call.scalars.end()));
  const tensor::Layout& layout = signature.layouts[output];
  const ir::Shape* shape = signature.outputs[output];
  return at::detail::make_tensor<XTensorImpl>(
      source, std::move(step), shape, layout,
      OffsetFor(source, shape) + layout.offset + call.runtime_offset);
}

// Writes the results of a mutating op, from output `first` on, back to its arguments.
void WriteMutated(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
                  const ir::Ref<ir::Node>& node, uint32_t first) LITE_REQUIRES(ir::record_lock) {
  for (const int i : info.mutated) {
    ops::ForEachTensor(arguments[i], [&](const at::Tensor& tensor) {
      ir::record_lock.AssertHeld();
      const uint32_t output = first++;
      if (tensor.defined()) XTensorImpl::From(tensor)->Write({node, output});
    });
  }
}

// The results of the op that are new: tensors, and lists of tensors.
template <typename Make>
void CollectResults(const ops::OpInfo& info, const OpSignature& signature, Make&& make,
                    ResultList* results) LITE_REQUIRES(ir::record_lock) {
  uint32_t output = 0;
  size_t fresh = 0;
  for (const int source : info.results) {
    if (source >= 0) continue;
    const int size = signature.result_sizes[fresh++];
    if (size < 0) {
      results->emplace_back(make(output++));
      continue;
    }
    std::vector<at::Tensor> list;
    for (int k = 0; k < size; ++k) list.push_back(make(output++));
    results->emplace_back(std::move(list));
  }
}

// Records the call and appends its new results to `results`.
void Record(const ops::OpInfo& info, const OpSignature& signature, const ops::Call& call,
            c10::ArrayRef<c10::IValue> arguments, ResultList* results)
    LITE_REQUIRES(ir::record_lock) {
  if (info.kind == ops::OpInfo::Kind::kInplaceView) {
    const at::Tensor view = MakeView(signature, call, 0);
    // The storage stays the same, so the returned one is not the last reference to it.
    const c10::Storage same = call.operands[0]->BecomeViewOf(*XTensorImpl::From(view));
  }
  if (info.IsView()) {
    CollectResults(
        info, signature,
        [&](uint32_t k) LITE_REQUIRES(ir::record_lock) { return MakeView(signature, call, k); },
        results);
    return;
  }
  const ir::Ref<ir::Node> node = MakeNode(signature, call);
  if (info.kind == ops::OpInfo::Kind::kMutating) {
    const uint32_t count = CountMutatedOutputs(info, arguments);
    WriteMutated(info, arguments, node, node->num_outputs() - count);
  }
  CollectResults(
      info, signature,
      [&](uint32_t k) LITE_REQUIRES(ir::record_lock) { return MakeOutput(node, k); }, results);
}

// torch's own kernels resize out= tensors to the result's sizes.
void ResizeOutputs(const ops::OpInfo& info, const OpSignature& signature,
                   c10::ArrayRef<c10::IValue> arguments) {
  ForEachWritten(info, signature, arguments,
                 [&](const at::Tensor& tensor, at::IntArrayRef sizes) { tensor.resize_(sizes); });
  TORCH_CHECK(OutputsFit(info, signature, arguments),
              "one tensor cannot hold several results of different sizes (in ", info.name,
              ").\nPass a tensor for each:  out=(a, b)");
}

// Records the functional form of an op in place, and copies its result to the first argument.
void RunConverted(const ops::OpInfo& info, Stack* stack) {
  const at::Tensor self = torch::jit::peek(*stack, 0, info.arguments.size()).toTensor();
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  ops::FindOp(info.name)->callBoxed(stack);
  self.copy_(torch::jit::pop(*stack).toTensor());
  stack->push_back(self);
}

// The arguments of a call, with item `k` of each list in place of the list.
Stack ArgumentsOfItem(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments, size_t k) {
  Stack of_item;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = arguments[i];
    if (value.isTensor() && info.op.schema().arguments()[i].name() == "scalars") {
      of_item.emplace_back(value.toTensor().narrow(0, static_cast<int64_t>(k), 1));
    } else if (!value.isList() || value.toList().empty()) {
      of_item.push_back(value);
    } else {
      const auto items = value.toList();
      c10::impl::GenericList one(items.elementType());
      one.push_back(items.get(k));
      of_item.emplace_back(std::move(one));
    }
  }
  return of_item;
}

const ops::OpInfo* NewOpInfo(const c10::OperatorHandle& op, std::atomic<const ops::OpInfo*>* slot) {
  const ir::MutexLock lock(&registered_mutex);
  auto info = std::make_unique<ops::OpInfo>(op, GetRegisteredOps());
  const ops::OpInfo* expected = nullptr;
  // If another thread was faster, use its info, which may already be part of keys.
  if (slot->compare_exchange_strong(expected, info.get())) return info.release();
  return expected;
}

}  // namespace

void AddLoweredOp(const std::string& name, bool needs_constants) {
  const ir::MutexLock lock(&registered_mutex);
  GetRegisteredOps().insert_or_assign(name, needs_constants);
}

void SetSourceHook(SourceHook hook) { source_hook = hook; }

const ops::OpInfo& RecordKernel::Info(const c10::OperatorHandle& op) {
  const ops::OpInfo* info = info_.load(std::memory_order_acquire);
  return info == nullptr ? *NewOpInfo(op, &info_) : *info;
}

Verdict RecordKernel::Record(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments,
                             NewResults* results, bool* is_at_limit) {
  const ops::OpInfo& info = Info(op);
  ops::Call call;
  const Verdict verdict = JudgeArguments(info, arguments, &call);
  if (verdict != Verdict::kRecord) return verdict;
  RunBackwardOnThisThread();
  if (const SourceHook hook = source_hook.load(std::memory_order_relaxed)) call.source = hook();
  ir::Ref<const OpSignature> unfit;
  {
    const RecordScope scope;
    const Judged judged = JudgeSignature(info, arguments, call);
    if (judged.verdict == Verdict::kResize) {
      unfit = ir::Ref<const OpSignature>::Share(judged.signature);
    } else if (judged.verdict != Verdict::kRecord) {
      return judged.verdict;
    } else {
      if (info.is_random) PushSeed(info, arguments, &call);
      record::Record(info, *judged.signature, call, arguments, results);
      *is_at_limit = Runtime::Get().pending_limit().Add(*judged.signature, judged.is_new);
    }
  }
  if (unfit) {
    ResizeOutputs(info, *unfit, arguments);
    return Record(op, arguments, results, is_at_limit);
  }
  if (info.layout >= 0) ApplyLayout(arguments, info.layout, &(*results)[0]);
  Runtime::Get().counters().recorded_ops.fetch_add(1, std::memory_order_relaxed);
  return Verdict::kRecord;
}

void RecordKernel::operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                              Stack* stack) {
  const size_t count = op.schema().arguments().size();
  NewResults results;
  bool is_at_limit = false;
  const Verdict verdict = Record(op, torch::jit::last(*stack, count), &results, &is_at_limit);
  const ops::OpInfo& info = Info(op);
  switch (verdict) {
    case Verdict::kRecord:
    case Verdict::kResize:  // Record has done it.
      break;
    case Verdict::kOnCpu:
      return RunOnCpu(info, stack);
    case Verdict::kForeign:
      // Fake tensors have shapes but no values, so meta kernels serve them.
      op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), stack);
      return;
    case Verdict::kCpuIndices:
      UploadIndices(count, stack);
      return (*this)(op, keys, stack);
    case Verdict::kElsewhere: {
      const c10::DispatchKey key = KeyOfOptions(info, torch::jit::last(*stack, count));
      return op.redispatchBoxed(c10::DispatchKeySet(key), stack);
    }
    case Verdict::kConvert:
      return RunConverted(info, stack);
    case Verdict::kItemByItem: {
      const Stack arguments = torch::jit::pop(*stack, count);
      const size_t size = arguments[info.mutated[0]].toListRef().size();
      for (size_t k = 0; k < size; ++k) {
        Stack of_item = ArgumentsOfItem(info, arguments, k);
        (*this)(op, keys, &of_item);
      }
      return;
    }
  }
  ResultList all;
  auto next = results.begin();
  for (const int source : info.results) {
    all.push_back(source >= 0 ? torch::jit::peek(*stack, source, count) : std::move(*next++));
  }
  torch::jit::drop(*stack, count);
  for (c10::IValue& result : all) stack->push_back(std::move(result));
  if (is_at_limit) Runtime::Get().StartPending();
}

}  // namespace torch_xla_lite::record
