#include "torch_xla_lite/csrc/kernels_of_torch/storage_kernels.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <vector>

#include "torch_xla_lite/csrc/record/layout.h"
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

// A tensor for the whole storage.
at::Tensor BaseOf(c10::StorageImpl* storage) {
  auto* alias = dynamic_cast<tensor::Alias*>(storage);
  TORCH_CHECK(alias != nullptr, "expected a storage on jax, found one on ", storage->device(),
              ".\nMove its tensor first:  tensor.to('jax')");
  const RecordScope scope;
  return at::detail::make_tensor<XTensorImpl>(
      c10::intrusive_ptr<tensor::Alias>::reclaim_copy(alias));
}

c10::StorageImpl* StorageOf(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

// A tensor for the whole storage of `view`, conjugated or negated if the view is. Other devices
// mark such views by bits, which their views inherit.
at::Tensor BaseOf(const at::Tensor& view) {
  bool is_conjugate = false, is_negative = false;
  {
    const RecordScope scope;
    const auto last = XTensorImpl::From(view)->step();
    for (const tensor::ViewStep* step = last.get(); step != nullptr; step = step->previous.get()) {
      is_conjugate ^= step->signature->op == "aten::_conj";
      is_negative ^= step->signature->op == "aten::_neg_view";
    }
  }
  at::Tensor base = BaseOf(StorageOf(view));
  if (is_conjugate) base = base._conj();
  return is_negative ? base._neg_view() : base;
}

// A whole storage as a vector of a dtype, without a remainder at its end.
at::Tensor Flat(const at::Tensor& base, c10::ScalarType dtype) {
  const at::Tensor flat = base.view({-1});
  if (flat.scalar_type() == dtype) return flat;
  const int64_t left_over = flat.nbytes() % c10::elementSize(dtype) / flat.element_size();
  return flat.narrow(0, 0, flat.numel() - left_over).view(dtype);
}

at::Tensor FlatBase(c10::StorageImpl* storage, c10::ScalarType dtype) {
  return Flat(BaseOf(storage), dtype);
}

// Grows a storage to at least `num_bytes`. Its contents stay; new elements, undefined in torch, are
// zero. `sizes` become those of the new base if they fit exactly.
void Grow(c10::StorageImpl* storage, int64_t num_bytes, at::IntArrayRef sizes) {
  const at::Tensor base = BaseOf(storage);
  if (static_cast<int64_t>(base.nbytes()) >= num_bytes) return;
  const int64_t numel = (num_bytes + base.element_size() - 1) / base.element_size();
  const bool fits = c10::multiply_integers(sizes) == numel;
  const at::Tensor grown = base.new_zeros(fits ? sizes : at::IntArrayRef(numel));
  const at::Tensor old_base = grown.view({-1}).narrow(0, 0, base.numel()).view(base.sizes());
  if (base.numel() > 0) old_base.copy_(base);
  auto& alias = XTensorImpl::From(base)->alias();
  const RecordScope scope;
  TORCH_CHECK(alias.shape() == XTensorImpl::From(base)->shape(),
              "the storage of a tensor on jax was resized by two threads at once");
  alias.Grow(XTensorImpl::From(grown)->Read(), XTensorImpl::From(old_base)->step());
}

// Makes `self` an alias of `view`.
void Become(const at::Tensor& self, const at::Tensor& view) {
  c10::Storage before;  // Released after the lock.
  const RecordScope scope;
  before = XTensorImpl::From(self)->BecomeViewOf(*XTensorImpl::From(view));
}

// torch's meta kernel does not check the bounds of the storage.
void CheckInBounds(const c10::StorageImpl& storage, const at::Tensor& tensor, at::IntArrayRef size,
                   at::IntArrayRef stride, int64_t offset) {
  const size_t itemsize = tensor.element_size();
  const size_t needed = at::detail::computeStorageNbytes(size, stride, itemsize, offset);
  TORCH_CHECK(needed <= storage.nbytes(), "setStorage: sizes ", size, ", strides ", stride,
              ", storage offset ", offset, ", and itemsize ", itemsize,
              " requiring a storage size of ", needed, " are out of bounds for storage of size ",
              storage.nbytes());
}

// as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset) -> Tensor(a)
//
// Sizes and strides refer to the storage and not to the tensor, so the step starts at the base.
void AsStrided(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 4);
  const at::Tensor self = arguments[0].toTensor();
  const at::DimVector size = arguments[1].toDimVector(), stride = arguments[2].toDimVector();
  const auto offset = arguments[3].toOptional<int64_t>().value_or(self.storage_offset());
  c10::StorageImpl* storage = StorageOf(self);
  if (size.size() == stride.size()) CheckInBounds(*storage, self, size, stride, offset);
  const at::Tensor base = BaseOf(self);
  *(stack->end() - 4) =
      base.scalar_type() == self.scalar_type() ? base : Flat(base, self.scalar_type());
  *(stack->end() - 1) = offset;
  static auto* recorder = new record::RecordKernel;
  (*recorder)(op, keys, stack);
}

// as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset) -> Tensor
void AsStridedCopy(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 4);
  const at::Tensor view = arguments[0].toTensor().as_strided(
      arguments[1].toDimVector(), arguments[2].toDimVector(), arguments[3].toOptional<int64_t>());
  torch::jit::drop(*stack, 4);
  stack->emplace_back(record::CopyOf(view));
}

// as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride,
//                    SymInt? storage_offset) -> Tensor
//
// Like as_strided, it refers to the storage: a copy of this is written to.
void AsStridedScatter(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 5);
  const at::Tensor self = arguments[0].toTensor();
  const at::Tensor copy = record::CopyOf(Flat(BaseOf(self), self.scalar_type()));
  const auto offset = arguments[4].toOptional<int64_t>().value_or(self.storage_offset());
  copy.as_strided(arguments[2].toDimVector(), arguments[3].toDimVector(), offset)
      .copy_(arguments[1].toTensor());
  const at::Tensor result = copy.as_strided(self.sizes(), self.strides(), self.storage_offset());
  torch::jit::drop(*stack, 5);
  stack->emplace_back(record::CopyOf(result));
}

// as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset)
//     -> Tensor(a!)
void AsStridedInPlace(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 4);
  const at::Tensor self = arguments[0].toTensor();
  const at::Tensor view = self.as_strided(arguments[1].toDimVector(), arguments[2].toDimVector(),
                                          arguments[3].toOptional<int64_t>());
  Become(self, view);
  torch::jit::drop(*stack, 4);
  stack->emplace_back(self);
}

// Makes the tensor a row-major view of another part of its storage; other views do not change.
void ResizeRowMajor(const at::Tensor& self, at::IntArrayRef size) {
  if (self.sizes() == size) return;
  const int64_t numel = c10::multiply_integers(size), offset = self.storage_offset();
  c10::StorageImpl* storage = StorageOf(self);
  if (numel > 0) Grow(storage, (offset + numel) * self.element_size(), size);
  const at::Tensor base = BaseOf(storage);
  if (base.sizes() == size && base.scalar_type() == self.scalar_type()) {
    Become(self, base);
  } else {
    const at::Tensor flat = FlatBase(storage, self.scalar_type());
    Become(self, flat.narrow(0, std::min(offset, flat.numel()), numel).view(size));
  }
}

// Orders the elements that lie in the memory in another way; no value moves.
void Restride(const at::Tensor& self, at::MemoryFormat format) {
  const std::vector<int64_t> strides = record::StridesFor(self, format);
  if (self.strides() == at::IntArrayRef(strides)) return;
  Become(self, self.as_strided(self.sizes(), strides, self.storage_offset()));
}

void ResizeTensor(const at::Tensor& self, at::IntArrayRef size, const c10::IValue& memory_format) {
  const auto format = memory_format.toOptional<at::MemoryFormat>();
  TORCH_CHECK(format != at::MemoryFormat::Preserve, "Unsupported memory format", *format);
  ResizeRowMajor(self, size);
  if (format) Restride(self, *format);
}

// resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format) -> Tensor(a!)
void Resize(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 3);
  ResizeTensor(arguments[0].toTensor(), arguments[1].toDimVector(), arguments[2]);
  torch::jit::drop(*stack, 2);
}

// resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format) -> Tensor(a!)
void ResizeAs(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 3);
  const at::Tensor& model = arguments[1].toTensor();
  const auto format = arguments[2].toOptional<at::MemoryFormat>();
  const bool is_preserved = format == at::MemoryFormat::Preserve;
  ResizeTensor(arguments[0].toTensor(), model.sizes(),
               is_preserved ? model.suggest_memory_format() : arguments[2]);
  torch::jit::drop(*stack, 2);
}

// resize(Tensor self, SymInt[] size, *, MemoryFormat? memory_format) -> Tensor
// resize_as(Tensor self, Tensor the_template, *, MemoryFormat? memory_format) -> Tensor
template <void (*resize)(const OperatorHandle&, DispatchKeySet, Stack*)>
void OfCopy(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  c10::IValue& self = *(stack->end() - 3);
  self = self.toTensor().clone();
  resize(op, keys, stack);
}

// set_(Tensor(a!) self) -> Tensor(a!)
void SetToNothing(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const at::Tensor self = stack->back().toTensor();
  Become(self, self.new_empty({0}));
}

// set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)
void SetToTensor(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const at::Tensor source = torch::jit::pop(*stack).toTensor();
  const XTensorImpl* impl = XTensorImpl::From(source);
  TORCH_CHECK(impl != nullptr, "set_ needs a source on jax, found one on ", source.device(),
              ".\nMove it first:  source.to('jax')");
  Become(torch::jit::peek(*stack, 0, 1).toTensor(), source);
}

// set_.source_Storage(Tensor(a!) self, Storage source) -> Tensor(a!)
void SetToStorage(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const c10::Storage source = torch::jit::pop(*stack).toStorage();
  const at::Tensor self = torch::jit::peek(*stack, 0, 1).toTensor();
  Become(self, FlatBase(source.unsafeGetStorageImpl(), self.scalar_type()));
}

// set_.source_Storage_storage_offset(Tensor(a!) self, Storage source, SymInt storage_offset,
//                                    SymInt[] size, SymInt[] stride) -> Tensor(a!)
void SetToStorageAt(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 5);
  const at::Tensor self = arguments[0].toTensor();
  const c10::Storage source = arguments[1].toStorage();
  const at::DimVector size = arguments[3].toDimVector();
  at::DimVector stride = arguments[4].toDimVector();
  if (stride.size() != size.size()) stride = at::DimVector(self.new_zeros(size).strides());
  const int64_t offset = arguments[2].toInt();
  const size_t num_bytes =
      at::detail::computeStorageNbytes(size, stride, self.element_size(), offset);
  Grow(source.unsafeGetStorageImpl(), static_cast<int64_t>(num_bytes), size);
  const at::Tensor base = BaseOf(source.unsafeGetStorageImpl());
  if (offset == 0 && base.scalar_type() == self.scalar_type() &&
      base.sizes() == at::IntArrayRef(size) && base.strides() == at::IntArrayRef(stride)) {
    Become(self, base);  // Without a step, so that reading it costs nothing.
  } else {
    const at::Tensor flat = FlatBase(source.unsafeGetStorageImpl(), self.scalar_type());
    Become(self, flat.as_strided(size, stride, offset));
  }
  torch::jit::drop(*stack, 5);
  stack->emplace_back(self);
}

// is_set_to(Tensor self, Tensor tensor) -> bool
void IsSetTo(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const at::Tensor other = torch::jit::pop(*stack).toTensor();
  const at::Tensor self = torch::jit::pop(*stack).toTensor();
  torch::jit::push(*stack, IsJax(self) && IsJax(other) && self.is_alias_of(other) &&
                               self.storage_offset() == other.storage_offset() &&
                               self.sizes() == other.sizes() && self.strides() == other.strides());
}

constexpr NamedKernel kKernels[] = {
    {"as_strided", Boxed<AsStrided>},
    {"as_strided_", Boxed<AsStridedInPlace>},
    {"as_strided_copy", Boxed<AsStridedCopy>},
    {"as_strided_scatter", Boxed<AsStridedScatter>},
    {"is_set_to", Boxed<IsSetTo>},
    {"resize", Boxed<OfCopy<Resize>>},
    {"resize_", Boxed<Resize>},
    {"resize_as", Boxed<OfCopy<ResizeAs>>},
    {"resize_as_", Boxed<ResizeAs>},
    {"set_", Boxed<SetToNothing>},
    {"set_.source_Storage", Boxed<SetToStorage>},
    {"set_.source_Storage_storage_offset", Boxed<SetToStorageAt>},
    {"set_.source_Tensor", Boxed<SetToTensor>},
};

}  // namespace

std::span<const NamedKernel> StorageKernels() { return kKernels; }

}  // namespace torch_xla_lite::kernels_of_torch
