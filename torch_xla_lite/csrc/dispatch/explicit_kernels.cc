#include "torch_xla_lite/csrc/dispatch/explicit_kernels.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/device/guard.h"
#include "torch_xla_lite/csrc/dispatch/call.h"
#include "torch_xla_lite/csrc/dispatch/fake_quantize.h"
#include "torch_xla_lite/csrc/dispatch/layout.h"
#include "torch_xla_lite/csrc/dispatch/overlap.h"
#include "torch_xla_lite/csrc/dispatch/record.h"
#include "torch_xla_lite/csrc/dispatch/transfer.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"
#include "torch_xla_lite/csrc/tensor/tensor_impl.h"

namespace torch_xla_lite::dispatch {
namespace {

using c10::DispatchKeySet;
using c10::OperatorHandle;
using runtime::RecordScope;
using tensor::XTensorImpl;
using torch::jit::Stack;

constexpr c10::DeviceType kJax = c10::DeviceType::PrivateUse1;

bool IsJax(const at::Tensor& tensor) { return tensor.device().type() == kJax; }

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

void Assign(const at::Tensor& target, const at::Tensor& source) {
  const RecordScope scope;
  XTensorImpl::From(target)->Write(XTensorImpl::From(source)->Read());
}

// Makes `self` an alias of `view`.
void Become(const at::Tensor& self, const at::Tensor& view) {
  c10::Storage before;  // Released after the lock.
  const RecordScope scope;
  before = XTensorImpl::From(self)->BecomeViewOf(*XTensorImpl::From(view));
}

// copy_(Tensor(a!) self, Tensor src, bool non_blocking) -> Tensor(a!)
void Copy(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const at::Tensor source = (*stack)[stack->size() - 2].toTensor();
  const at::Tensor self = (*stack)[stack->size() - 3].toTensor();
  torch::jit::drop(*stack, 3);
  if (!IsJax(self)) {
    TORCH_CHECK(self.device().is_cpu(), "jax tensors are copied to the CPU only, not to ",
                self.device(), ".\nCopy in two steps:  x.cpu().to('", self.device(), "')");
    self.copy_(Download(source));
  } else {
    if (!source.is_same(self)) CheckWritable(self, "aten::copy_");
    CheckSharing(*XTensorImpl::From(self), source, OpInfo::Sharing::kSame);
    // Broadcasting and conversion happen on the device of the data: a CPU tensor is converted
    // before it is uploaded.
    at::Tensor value = source;
    if (value.scalar_type() != self.scalar_type()) value = value.to(self.scalar_type());
    if (!IsJax(value)) value = Upload(value);
    if (value.sizes() != self.sizes()) value = value.expand(self.sizes());
    Assign(self, PlacedAs(self, value));
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
  const bool leaves = device && device->type() != kJax;
  TORCH_CHECK(leaves || !arguments[4].toOptional<bool>().value_or(false),
              "only tensors on the CPU can be pinned (in aten::_to_copy)");
  TORCH_CHECK(arguments[2].toOptional<at::Layout>().value_or(at::kStrided) == at::kStrided,
              "a copy between devices has the layout torch.strided (in aten::_to_copy)");
  if (device && !leaves) device::CheckDeviceIndex(device->index());
  if (IsJax(self) && !leaves && dtype && *dtype != self.scalar_type()) {
    static auto* recorder = new RecordKernel;
    return (*recorder)(op, keys, stack);
  }
  const auto format =
      arguments[6].toOptional<at::MemoryFormat>().value_or(at::MemoryFormat::Preserve);
  torch::jit::drop(*stack, 7);
  const std::vector<int64_t> strides = StridesFor(self, format);
  if (!IsJax(self)) {
    // torch calls the kernel of the target device.
    const at::Tensor value = Upload(self.to(dtype.value_or(self.scalar_type())));
    stack->emplace_back(WithStrides(value, strides));
  } else if (leaves) {
    at::Tensor value = Download(self);
    if (value.strides() != at::IntArrayRef(strides)) {
      const at::Tensor dense = value;
      value =
          at::Tensor(at::detail::empty_strided_cpu(dense.sizes(), strides, dense.scalar_type()));
      value.copy_(dense);
    }
    stack->emplace_back(value.to(*device, dtype.value_or(value.scalar_type())));
  } else {
    stack->emplace_back(WithStrides(CopyOf(self), strides));
  }
}

// clone(Tensor self, *, MemoryFormat? memory_format) -> Tensor
void Clone(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const at::Tensor self = (*stack)[stack->size() - 2].toTensor();
  const auto format =
      stack->back().toOptional<at::MemoryFormat>().value_or(at::MemoryFormat::Preserve);
  torch::jit::drop(*stack, 2);
  stack->emplace_back(WithStrides(CopyOf(self), StridesFor(self, format)));
}

// detach(Tensor(a) self) -> Tensor(a), and other ops that return an alias of their argument
void Share(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const at::Tensor self = torch::jit::pop(*stack).toTensor();
  stack->emplace_back(at::Tensor(XTensorImpl::From(self)->Twin()));
}

// _local_scalar_dense(Tensor self) -> Scalar
void LocalScalarDense(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const at::Tensor self = torch::jit::pop(*stack).toTensor();
  stack->emplace_back(Download(self).item());
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
  static auto* recorder = new RecordKernel;
  (*recorder)(op, keys, stack);
}

// as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset) -> Tensor
void AsStridedCopy(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 4);
  const at::Tensor view = arguments[0].toTensor().as_strided(
      arguments[1].toDimVector(), arguments[2].toDimVector(), arguments[3].toOptional<int64_t>());
  torch::jit::drop(*stack, 4);
  stack->emplace_back(CopyOf(view));
}

// as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride,
//                    SymInt? storage_offset) -> Tensor
//
// Like as_strided, it refers to the storage: a copy of this is written to.
void AsStridedScatter(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 5);
  const at::Tensor self = arguments[0].toTensor();
  const at::Tensor copy = CopyOf(Flat(BaseOf(self), self.scalar_type()));
  const auto offset = arguments[4].toOptional<int64_t>().value_or(self.storage_offset());
  copy.as_strided(arguments[2].toDimVector(), arguments[3].toDimVector(), offset)
      .copy_(arguments[1].toTensor());
  const at::Tensor result = copy.as_strided(self.sizes(), self.strides(), self.storage_offset());
  torch::jit::drop(*stack, 5);
  stack->emplace_back(CopyOf(result));
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

// resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format) -> Tensor(a!)
void Resize(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 3);
  const at::Tensor self = arguments[0].toTensor();
  const at::DimVector size = arguments[1].toDimVector();
  torch::jit::drop(*stack, 3);
  if (self.sizes() != at::IntArrayRef(size)) {
    // The tensor becomes a row-major view of another part of its storage; other views do not
    // change.
    const int64_t numel = c10::multiply_integers(size), offset = self.storage_offset();
    c10::StorageImpl* storage = StorageOf(self);
    if (numel > 0) Grow(storage, (offset + numel) * self.element_size(), size);
    const at::Tensor base = BaseOf(storage);
    if (base.sizes() == at::IntArrayRef(size) && base.scalar_type() == self.scalar_type()) {
      Become(self, base);
    } else {
      const at::Tensor flat = FlatBase(storage, self.scalar_type());
      Become(self, flat.narrow(0, std::min(offset, flat.numel()), numel).view(size));
    }
  }
  stack->emplace_back(self);
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
  static auto* recorder = new RecordKernel;
  (*recorder)(op, keys, stack);
}

// Reading one result of a view op computes all of them. That of a few is one op of XLA; many are
// views of their own, so that reading n of them is not n times n slices.
constexpr int64_t kMostResultsOfOneView = 8;

bool HasDim(const at::Tensor& tensor, int64_t dim) {
  return -tensor.dim() <= dim && dim < tensor.dim();
}

// unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]
void Unbind(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  static auto* recorder = new RecordKernel;
  const auto arguments = torch::jit::last(*stack, 2);
  const at::Tensor self = arguments[0].toTensor();
  const int64_t dim = arguments[1].toInt();
  if (!HasDim(self, dim) || self.size(dim) <= kMostResultsOfOneView)
    return (*recorder)(op, keys, stack);
  const ConstantIndices constants;
  std::vector<at::Tensor> parts;
  for (int64_t i = 0; i < self.size(dim); ++i) parts.push_back(self.select(dim, i));
  torch::jit::drop(*stack, 2);
  torch::jit::push(*stack, std::move(parts));
}

// Replaces the arguments (self, sizes, dim) on the stack by a view for each part.
void PushParts(const at::Tensor& self, std::span<const int64_t> sizes, int64_t dim, Stack* stack) {
  const ConstantIndices constants;
  std::vector<at::Tensor> parts;
  int64_t start = 0;
  for (const int64_t size : sizes) {
    parts.push_back(self.slice(dim, start, start + size));
    start += size;
  }
  torch::jit::drop(*stack, 3);
  torch::jit::push(*stack, std::move(parts));
}

// split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]
void Split(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  static auto* recorder = new RecordKernel;
  const auto arguments = torch::jit::last(*stack, 3);
  const at::Tensor self = arguments[0].toTensor();
  const int64_t size = arguments[1].toInt(), dim = arguments[2].toInt();
  const bool is_valid = HasDim(self, dim) && size > 0;
  if (!is_valid || self.size(dim) / size < kMostResultsOfOneView)
    return (*recorder)(op, keys, stack);
  const int64_t rest = self.size(dim) % size;
  std::vector<int64_t> sizes(self.size(dim) / size, size);
  if (rest > 0) sizes.push_back(rest);
  PushParts(self, sizes, dim, stack);
}

// split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]
void SplitWithSizes(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  static auto* recorder = new RecordKernel;
  const auto arguments = torch::jit::last(*stack, 3);
  const at::Tensor self = arguments[0].toTensor();
  const std::vector<int64_t> sizes = arguments[1].toIntVector();
  const int64_t dim = arguments[2].toInt();
  const bool is_valid = HasDim(self, dim) &&
                        std::ranges::all_of(sizes, [](int64_t size) { return size >= 0; }) &&
                        std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) == self.size(dim);
  if (!is_valid || std::ssize(sizes) <= kMostResultsOfOneView) return (*recorder)(op, keys, stack);
  PushParts(self, sizes, dim, stack);
}

// _linalg_det(Tensor A) -> ..., _linalg_slogdet(Tensor A) -> ...
// torch factorises the transpose of a contiguous real matrix, otherwise the matrix itself, and its
// gradient formula checks the strides again. Recorded values have no strides, so the lowering
// always factorises as for a contiguous matrix.
void Determinant(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  const at::Tensor matrix = stack->back().toTensor();
  if (!matrix.is_contiguous() && !matrix.is_complex()) stack->back() = matrix.transpose(-2, -1);
  static auto* recorder = new RecordKernel;
  static auto* log_recorder = new RecordKernel;
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
  packed = input.flatten(0, 1).index_select(0, Upload(packed.toTensor()));
}

// _unsafe_view(Tensor self, SymInt[] size) -> Tensor
//
// A view of which autograd knows nothing. Some of torch's ops (kron with `out`) write through it.
void UnsafeView(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const std::vector<int64_t> size = torch::jit::pop(*stack).toIntVector();
  const at::Tensor self = torch::jit::pop(*stack).toTensor();
  torch::jit::push(*stack, self.reshape(size));
}

// _has_same_storage_numel(Tensor self, Tensor other) -> bool
void HasSameStorageNumel(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const at::Tensor other = torch::jit::pop(*stack).toTensor();
  const at::Tensor self = torch::jit::pop(*stack).toTensor();
  const auto size = [](const at::Tensor& tensor) {
    return tensor.storage().nbytes() / tensor.itemsize();
  };
  torch::jit::push(*stack, size(self) == size(other));
}

// is_same_size(Tensor self, Tensor other) -> bool
void IsSameSize(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const at::Tensor other = torch::jit::pop(*stack).toTensor();
  const at::Tensor self = torch::jit::pop(*stack).toTensor();
  torch::jit::push(*stack, self.sizes() == other.sizes());
}

// is_set_to(Tensor self, Tensor tensor) -> bool
void IsSetTo(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const at::Tensor other = torch::jit::pop(*stack).toTensor();
  const at::Tensor self = torch::jit::pop(*stack).toTensor();
  torch::jit::push(*stack, IsJax(self) && IsJax(other) && self.is_alias_of(other) &&
                               self.storage_offset() == other.storage_offset() &&
                               self.sizes() == other.sizes() && self.strides() == other.strides());
}

// record_stream(Tensor(a!) self, Stream s) -> ()
// There is one stream, and XLA frees memory when no computation needs it.
void RecordStream(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  torch::jit::drop(*stack, 2);
}

// Predicates that are always false: whether a transformer module may use a nested tensor, which
// does not exist here; whether cuDNN or MIOpen has a kernel.
void No(const OperatorHandle& op, DispatchKeySet, Stack* stack) {
  torch::jit::drop(*stack, op.schema().arguments().size());
  torch::jit::push(*stack, false);
}

using Kernel = void (*)(const OperatorHandle&, DispatchKeySet, Stack*);

// Whether a tensor is fake: a meta tensor with device jax, or one that is just being converted.
bool IsForeign(const c10::IValue& argument) {
  if (!argument.isTensor() || !argument.toTensor().defined()) return false;
  const at::Tensor& tensor = argument.toTensor();
  return (tensor.is_meta() || IsJax(tensor)) && XTensorImpl::From(tensor) == nullptr;
}

// Fake tensors have shapes but no values, so meta kernels serve them.
template <Kernel kernel>
void OwnTensorsOnly(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  if (std::any_of(arguments.begin(), arguments.end(), IsForeign)) {
    op.redispatchBoxed(DispatchKeySet(c10::DispatchKey::Meta), stack);
  } else {
    kernel(op, keys, stack);
  }
}

template <Kernel kernel>
torch::CppFunction Boxed() {
  return torch::CppFunction::makeFromBoxedFunction<&OwnTensorsOnly<kernel>>();
}

constexpr ExplicitKernel kKernels[] = {
    {"_fused_moving_avg_obs_fq_helper", Boxed<ObserveAndFakeQuantize>},
    {"_has_same_storage_numel", Boxed<HasSameStorageNumel>},
    {"_linalg_det", Boxed<Determinant>},
    {"_linalg_slogdet", Boxed<Determinant>},
    {"_local_scalar_dense", Boxed<LocalScalarDense>},
    {"_nested_tensor_from_mask_left_aligned", Boxed<No>},
    {"_pack_padded_sequence", Boxed<PackPaddedSequence>},
    {"_to_copy", Boxed<ToCopy>},
    {"_use_cudnn_ctc_loss", Boxed<No>},
    {"_use_cudnn_ctc_loss.Tensor", Boxed<No>},
    {"_use_miopen_ctc_loss", Boxed<No>},
    {"_use_miopen_ctc_loss.Tensor", Boxed<No>},
    {"_unsafe_view", Boxed<UnsafeView>},
    {"alias", Boxed<Share>},
    {"as_strided", Boxed<AsStrided>},
    {"as_strided_", Boxed<AsStridedInPlace>},
    {"as_strided_copy", Boxed<AsStridedCopy>},
    {"as_strided_scatter", Boxed<AsStridedScatter>},
    {"clone", Boxed<Clone>},
    {"copy_", Boxed<Copy>},
    {"detach", Boxed<Share>},
    {"is_same_size", Boxed<IsSameSize>},
    {"is_set_to", Boxed<IsSetTo>},
    {"lift_fresh", Boxed<Share>},
    {"native_batch_norm", Boxed<NativeBatchNorm>},
    {"record_stream", Boxed<RecordStream>},
    {"resize_", Boxed<Resize>},
    {"set_", Boxed<SetToNothing>},
    {"set_.source_Storage", Boxed<SetToStorage>},
    {"set_.source_Storage_storage_offset", Boxed<SetToStorageAt>},
    {"set_.source_Tensor", Boxed<SetToTensor>},
    {"split.Tensor", Boxed<Split>},
    {"split_with_sizes", Boxed<SplitWithSizes>},
    {"unbind.int", Boxed<Unbind>},
};

}  // namespace

std::span<const ExplicitKernel> ExplicitKernels() { return kKernels; }

}  // namespace torch_xla_lite::dispatch
