#include "torch_xla_lite/csrc/kernels_of_torch/copies.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>

#include <vector>

#include "torch_xla_lite/csrc/device/guard.h"
#include "torch_xla_lite/csrc/record/layout.h"
#include "torch_xla_lite/csrc/record/overlap.h"
#include "torch_xla_lite/csrc/record/record.h"
#include "torch_xla_lite/csrc/record/transfer.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"
#include "torch_xla_lite/csrc/tensor/tensor_impl.h"

namespace torch_xla_lite::kernels_of_torch {
namespace {

using c10::DispatchKeySet;
using c10::OperatorHandle;
using runtime::RecordScope;
using tensor::XTensorImpl;
using torch::jit::Stack;

void Assign(const at::Tensor& target, const at::Tensor& source) {
  const RecordScope scope;
  XTensorImpl::From(target)->Write(XTensorImpl::From(source)->Read());
}

// copy_(Tensor(a!) self, Tensor src, bool non_blocking) -> Tensor(a!)
void Copy(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const at::Tensor source = (*stack)[stack->size() - 2].toTensor();
  const at::Tensor self = (*stack)[stack->size() - 3].toTensor();
  torch::jit::drop(*stack, 3);
  if (!IsJax(self)) {
    TORCH_CHECK(self.device().is_cpu(), "jax tensors are copied to the CPU only, not to ",
                self.device(), ".\nCopy in two steps:  x.cpu().to('", self.device(), "')");
    self.copy_(record::Download(source));
  } else {
    if (!source.is_same(self)) record::CheckWritable(self, "aten::copy_");
    record::CheckSharing(*XTensorImpl::From(self), source, ops::OpInfo::Sharing::kSame);
    // Broadcasting and conversion happen on the device of the data: a CPU tensor is converted
    // before it is uploaded.
    at::Tensor value = source;
    if (value.scalar_type() != self.scalar_type()) value = value.to(self.scalar_type());
    if (!IsJax(value)) value = record::Upload(value);
    if (value.sizes() != self.sizes()) value = value.expand(self.sizes());
    Assign(self, record::PlacedAs(self, value));
  }
  stack->emplace_back(self);
}

// _to_copy(Tensor self, *, ScalarType? dtype, Layout? layout, Device? device, bool? pin_memory,
//          bool non_blocking, MemoryFormat? memory_format) -> Tensor
void ToCopy(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 7);
  const at::Tensor self = arguments[0].toTensor();
  const auto dtype = arguments[1].toOptional<at::ScalarType>();
  const auto device = arguments[3].toOptional<c10::Device>();
  const bool leaves = device && !device->is_privateuseone();
  TORCH_CHECK(leaves || !arguments[4].toOptional<bool>().value_or(false),
              "only tensors on the CPU can be pinned (in aten::_to_copy)");
  TORCH_CHECK(arguments[2].toOptional<at::Layout>().value_or(at::kStrided) == at::kStrided,
              "a copy between devices has the layout torch.strided (in aten::_to_copy)");
  if (device && !leaves) device::CheckDeviceIndex(device->index());
  if (IsJax(self) && !leaves && dtype && *dtype != self.scalar_type()) {
    static auto* recorder = new record::RecordKernel;
    return (*recorder)(op, keys, stack);
  }
  const auto format =
      arguments[6].toOptional<at::MemoryFormat>().value_or(at::MemoryFormat::Preserve);
  torch::jit::drop(*stack, 7);
  const std::vector<int64_t> strides = record::StridesFor(self, format);
  if (!IsJax(self)) {
    // torch calls the kernel of the target device.
    const at::Tensor value = record::Upload(self.to(dtype.value_or(self.scalar_type())));
    stack->emplace_back(record::WithStrides(value, strides));
  } else if (leaves) {
    at::Tensor value = record::Download(self);
    if (value.strides() != at::IntArrayRef(strides)) {
      const at::Tensor dense = value;
      value =
          at::Tensor(at::detail::empty_strided_cpu(dense.sizes(), strides, dense.scalar_type()));
      value.copy_(dense);
    }
    stack->emplace_back(value.to(*device, dtype.value_or(value.scalar_type())));
  } else {
    stack->emplace_back(record::WithStrides(record::CopyOf(self), strides));
  }
}

// clone(Tensor self, *, MemoryFormat? memory_format) -> Tensor
void Clone(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const at::Tensor self = (*stack)[stack->size() - 2].toTensor();
  const auto format =
      stack->back().toOptional<at::MemoryFormat>().value_or(at::MemoryFormat::Preserve);
  torch::jit::drop(*stack, 2);
  stack->emplace_back(record::WithStrides(record::CopyOf(self), record::StridesFor(self, format)));
}

// _local_scalar_dense(Tensor self) -> Scalar
void LocalScalarDense(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const at::Tensor self = torch::jit::pop(*stack).toTensor();
  stack->emplace_back(record::DownloadNumber(self));
}

constexpr NamedKernel kKernels[] = {
    {"_local_scalar_dense", Boxed<LocalScalarDense>},
    {"_to_copy", Boxed<ToCopy>},
    {"clone", Boxed<Clone>},
    {"copy_", Boxed<Copy>},
};

}  // namespace

std::span<const NamedKernel> CopyKernels() { return kKernels; }

}  // namespace torch_xla_lite::kernels_of_torch
