#include "torch_xla_lite/csrc/record/judge.h"

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <utility>

#include "torch_xla_lite/csrc/infer/infer.h"
#include "torch_xla_lite/csrc/infer/numbers.h"
#include "torch_xla_lite/csrc/ir/signature.h"
#include "torch_xla_lite/csrc/ops/map_tensors.h"
#include "torch_xla_lite/csrc/record/overlap.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"

namespace torch_xla_lite::record {
namespace {

using tensor::OpSignature;

ir::SignatureTable& Signatures() LITE_REQUIRES(ir::record_lock) {
  static auto* table = new ir::SignatureTable;
  return *table;
}

// The signature of the call; inferred, while the lock is released, if it is new.
const OpSignature* FindSignature(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
                                 const ops::Call& call, bool* is_new)
    LITE_REQUIRES(ir::record_lock) {
  const ir::Signature* signature = Signatures().Find(call.key());
  *is_new = signature == nullptr;
  if (*is_new) {
    ir::Ref<OpSignature> inferred;
    {
      const runtime::RecordPause pause;
      inferred = infer::Infer(info, arguments, call);
    }
    signature = Signatures().Insert(std::move(inferred));
  }
  return static_cast<const OpSignature*>(signature);
}

// Whether the CPU kernel must decide about the numbers among the arguments.
bool RefusesNumbers(const ops::OpInfo& info, const OpSignature& signature,
                    c10::ArrayRef<c10::IValue> arguments) {
  if (info.ranged_numbers.empty() && info.facts->divides.empty()) return false;
  if (signature.outputs.empty() || signature.outputs[0] == nullptr) return false;
  return !infer::NumbersFit(info, arguments, tensor::ScalarTypeOf(signature.outputs[0]));
}

Verdict VerdictOf(ops::Call::Status status) {
  switch (status) {
    case ops::Call::Status::kOk:
      return Verdict::kRecord;
    case ops::Call::Status::kForeign:
      return Verdict::kForeign;
    case ops::Call::Status::kCpuIndices:
      return Verdict::kCpuIndices;
  }
  return Verdict::kOnCpu;  // There is no other status.
}

}  // namespace

bool OutputsFit(const ops::OpInfo& info, const OpSignature& signature,
                c10::ArrayRef<c10::IValue> arguments) {
  if (!info.has_out) return true;
  bool fit = true;
  ForEachWritten(info, signature, arguments, [&](const at::Tensor& tensor, at::IntArrayRef sizes) {
    fit = fit && tensor.sizes() == sizes;
  });
  return fit;
}

Verdict JudgeArguments(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
                       ops::Call* call) {
  if (info.options >= 0 && KeyOfOptions(info, arguments) != c10::DispatchKey::PrivateUse1)
    return Verdict::kElsewhere;
  if (info.kind == ops::OpInfo::Kind::kOnCpu) return Verdict::kOnCpu;
  const Verdict verdict = VerdictOf(call->Read(info, arguments));
  if (verdict != Verdict::kRecord) return verdict;
  if (ListsShareMemory(info, arguments)) return Verdict::kItemByItem;
  CheckWrites(info, arguments);
  return Verdict::kRecord;
}

Judged JudgeSignature(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
                      const ops::Call& call) {
  Judged judged{Verdict::kRecord, nullptr, false};
  judged.signature = FindSignature(info, arguments, call, &judged.is_new);
  const OpSignature& signature = *judged.signature;
  if (signature.runs_on_cpu || RefusesNumbers(info, signature, arguments)) {
    judged.verdict = Verdict::kOnCpu;
  } else if (signature.converts) {
    judged.verdict = Verdict::kConvert;
  } else if (!OutputsFit(info, signature, arguments)) {
    judged.verdict = Verdict::kResize;
  }
  return judged;
}

c10::DispatchKey KeyOfOptions(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  const auto options = arguments.slice(info.options, 3);
  const auto layout = options[0].toOptional<at::Layout>().value_or(at::kStrided);
  const auto device = options[1].toOptional<c10::Device>().value_or(c10::DeviceType::PrivateUse1);
  const bool is_pinned = options[2].toOptional<bool>().value_or(false);
  TORCH_CHECK(!is_pinned || !device.is_privateuseone(),
              "only tensors on the CPU can be pinned (in ", info.name,
              ").\nLeave pin_memory out, or name that device:  device='cpu'");
  TORCH_CHECK_NOT_IMPLEMENTED(
      layout == at::kStrided || layout == at::kJagged || !device.is_privateuseone(),
      "device jax has dense tensors only (in ", info.name, ").\nMake tensors of layout ", layout,
      " on the CPU:  device='cpu'");
  return c10::computeDispatchKey(std::nullopt, layout, device);
}

uint32_t CountMutatedOutputs(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  uint32_t count = 0;
  for (const int i : info.mutated) {
    ops::ForEachTensor(arguments[i], [&](const at::Tensor&) { ++count; });
  }
  return count;
}

}  // namespace torch_xla_lite::record
