#include "torch_xla_lite/csrc/kernels_of_torch/named_kernels.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>

#include <numeric>

#include "torch_xla_lite/csrc/kernels_of_torch/copies.h"
#include "torch_xla_lite/csrc/kernels_of_torch/fake_quantize.h"
#include "torch_xla_lite/csrc/kernels_of_torch/storage_kernels.h"
#include "torch_xla_lite/csrc/kernels_of_torch/view_kernels.h"
#include "torch_xla_lite/csrc/record/record.h"
#include "torch_xla_lite/csrc/record/transfer.h"

namespace torch_xla_lite::kernels_of_torch {
namespace {

using c10::DispatchKeySet;
using c10::OperatorHandle;
using torch::jit::Stack;

// native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean,
//                   Tensor? running_var, bool training, float momentum, float eps)
//     -> (Tensor, Tensor, Tensor)
//
// In training it writes to the running statistics, which its schema does not mark as written.
// _native_batch_norm_legit is the same op with a correct schema.
void NativeBatchNorm(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 8);
  const bool updates = arguments[5].toBool() && arguments[3].isTensor() &&
                       arguments[3].toTensor().defined() && arguments[4].isTensor() &&
                       arguments[4].toTensor().defined();
  if (updates) {
    static const auto* legit = new OperatorHandle(
        c10::Dispatcher::singleton().findSchemaOrThrow("aten::_native_batch_norm_legit", ""));
    return legit->callBoxed(stack);
  }
  static auto* recorder = new record::RecordKernel;
  (*recorder)(op, keys, stack);
}

// _linalg_det(Tensor A) -> ..., _linalg_slogdet(Tensor A) -> ...
// torch factorises the transpose of a contiguous real matrix, otherwise the matrix itself, and its
// gradient formula checks the strides again. Recorded values have no strides, so the lowering
// always factorises as for a contiguous matrix.
void Determinant(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  const at::Tensor matrix = stack->back().toTensor();
  if (!matrix.is_contiguous() && !matrix.is_complex()) stack->back() = matrix.transpose(-2, -1);
  static auto* recorder = new record::RecordKernel;
  static auto* log_recorder = new record::RecordKernel;
  const bool is_log = op.operator_name().name == "aten::_linalg_slogdet";
  (is_log ? *log_recorder : *recorder)(op, keys, stack);
}

// _pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)
//
// The lengths are on the CPU, on every device. torch's CPU kernel packs the positions instead of
// the data, and checks the lengths.
void PackPaddedSequence(const OperatorHandle& op, DispatchKeySet, Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 3);
  const at::Tensor input = arguments[0].toTensor(), lengths = arguments[1].toTensor();
  const bool batch_first = arguments[2].toBool();
  TORCH_CHECK(lengths.device().is_cpu(),
              "the lengths of packed sequences must be on the CPU, not on ", lengths.device(),
              ".\nMove them first:  lengths.cpu()");
  TORCH_CHECK(IsJax(input) && input.dim() >= 2,
              "expected sequences of at least 2 dimensions, found ", input.dim());
  at::Tensor positions(at::detail::empty_cpu(input.sizes().slice(0, 2), at::kLong));
  auto* first = static_cast<int64_t*>(positions.mutable_data_ptr());
  std::iota(first, first + positions.numel(), 0);
  torch::jit::drop(*stack, 3);
  torch::jit::push(*stack, positions, lengths, batch_first);
  op.callBoxed(stack);
  c10::IValue& packed = *(stack->end() - 2);
  packed = input.flatten(0, 1).index_select(0, record::Upload(packed.toTensor()));
}

// is_same_size(Tensor self, Tensor other) -> bool
void IsSameSize(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const at::Tensor other = torch::jit::pop(*stack).toTensor();
  const at::Tensor self = torch::jit::pop(*stack).toTensor();
  torch::jit::push(*stack, self.sizes() == other.sizes());
}

// record_stream(Tensor(a!) self, Stream s) -> ()
// There is one stream, and XLA frees memory when no computation needs it.
void RecordStream(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  torch::jit::drop(*stack, 2);
}

// Predicates that are always false: whether a transformer module may use a nested tensor, which
// does not exist here; whether cuDNN or MIOpen has a kernel.
void ReturnFalse(const OperatorHandle& op, DispatchKeySet, Stack* stack) {
  torch::jit::drop(*stack, op.schema().arguments().size());
  torch::jit::push(*stack, false);
}

constexpr NamedKernel kKernels[] = {
    {"_fused_moving_avg_obs_fq_helper", Boxed<ObserveAndFakeQuantize>},
    {"_linalg_det", Boxed<Determinant>},
    {"_linalg_slogdet", Boxed<Determinant>},
    {"_nested_tensor_from_mask_left_aligned", Boxed<ReturnFalse>},
    {"_pack_padded_sequence", Boxed<PackPaddedSequence>},
    {"_use_cudnn_ctc_loss", Boxed<ReturnFalse>},
    {"_use_cudnn_ctc_loss.Tensor", Boxed<ReturnFalse>},
    {"_use_miopen_ctc_loss", Boxed<ReturnFalse>},
    {"_use_miopen_ctc_loss.Tensor", Boxed<ReturnFalse>},
    {"is_same_size", Boxed<IsSameSize>},
    {"native_batch_norm", Boxed<NativeBatchNorm>},
    {"record_stream", Boxed<RecordStream>},
};

}  // namespace

std::vector<NamedKernel> NamedKernels() {
  std::vector<NamedKernel> all(std::begin(kKernels), std::end(kKernels));
  for (const auto kernels : {CopyKernels(), StorageKernels(), ViewKernels()})
    all.insert(all.end(), kernels.begin(), kernels.end());
  return all;
}

}  // namespace torch_xla_lite::kernels_of_torch
