#include "torch_xla_lite/csrc/record/transfer.h"

#include <ATen/EmptyTensor.h>

#include <cstring>

#include "torch_xla_lite/csrc/aten/kernel_keys.h"
#include "torch_xla_lite/csrc/ir/placement.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/ops/decode.h"
#include "torch_xla_lite/csrc/runtime/executor.h"
#include "torch_xla_lite/csrc/runtime/pending_limit.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"
#include "torch_xla_lite/csrc/tensor/host_view.h"
#include "torch_xla_lite/csrc/tensor/tensor_impl.h"

namespace torch_xla_lite::record {

using runtime::Runtime;
using tensor::XTensorImpl;

ir::Ref<ir::Buffer> Materialize(const at::Tensor& tensor) {
  Runtime& runtime = Runtime::Get();
  ir::Value value;
  {
    const runtime::RecordScope scope;
    value = XTensorImpl::From(tensor)->Read();
  }
  return runtime.Materialize(value);
}

at::Tensor Upload(const at::Tensor& cpu_tensor) {
  TORCH_CHECK_NOT_IMPLEMENTED(!cpu_tensor.is_nested(),
                              "device jax has no nested tensors of layout torch.strided.\nUse the "
                              "other layout:  layout=torch.jagged");
  TORCH_CHECK_NOT_IMPLEMENTED(cpu_tensor.layout() == c10::kStrided,
                              "device jax has dense tensors only, and this one is ",
                              cpu_tensor.layout(), ".\nKeep it on the CPU:  x.cpu().to_sparse()");
  Runtime& runtime = Runtime::Get();
  const at::Tensor dense = cpu_tensor.resolve_conj().resolve_neg().contiguous();
  TORCH_CHECK(
      dense.storage().nbytes() >= dense.storage_offset() * dense.element_size() + dense.nbytes(),
      "a tensor of ", dense.nbytes(), " bytes has a storage of ", dense.storage().nbytes(),
      " only and cannot be copied to jax");
  const auto shape = tensor::ShapeOf(dense.scalar_type(), dense.sizes(), "aten::_to_copy");
  if (runtime.pending_limit().AddUpload(dense.nbytes())) runtime.StartPending();
  auto buffer = runtime.executor().Upload(shape.get(), dense.const_data_ptr());
  ir::Value leaf{ir::Node::Leaf(shape.get(), std::move(buffer)), 0};
  const runtime::RecordScope scope;
  return at::Tensor(tensor::MakeTensor(std::move(leaf)));
}

at::Tensor PlacedAs(const at::Tensor& target, const at::Tensor& value) {
  const XTensorImpl& impl = *XTensorImpl::From(target);
  ir::Ref<const ir::Shape> shape;
  ir::Ref<ir::Buffer> buffer;
  ir::Placement placement;
  {
    const runtime::RecordScope scope;
    placement = impl.alias().placement();
    if (ir::MeshOf(placement) == 0 || placement == ir::kAnywhere || impl.step() != nullptr) {
      return value;
    }
    const ir::Value source = XTensorImpl::From(value)->Read();
    if (source.buffer() == nullptr || source.buffer()->placement() == placement) return value;
    shape = ir::Ref<const ir::Shape>::Share(source.shape());
    buffer = ir::Ref<ir::Buffer>::Share(source.buffer());
  }
  auto placed = Runtime::Get().executor().Placed(shape.get(), std::move(buffer), placement);
  ir::Value leaf{ir::Node::Leaf(shape.get(), std::move(placed)), 0};
  const runtime::RecordScope scope;
  return at::Tensor(tensor::MakeTensor(std::move(leaf)));
}

namespace {

// What a tensor shows, all or a part of it, if that is computed.
ir::Ref<ir::Buffer> ComputedBase(const at::Tensor& tensor) {
  const runtime::RecordScope scope;
  const XTensorImpl& impl = *XTensorImpl::From(tensor);
  ir::Buffer* const buffer = impl.alias().value().buffer();
  if (buffer == nullptr || tensor::IsConjugated(impl.step().get())) return {};
  return ir::Ref<ir::Buffer>::Share(buffer);
}

// Copies what a tensor shows of memory that the host can read: no graph runs for it. False if it
// is not there.
bool CopyComputed(const at::Tensor& tensor, void* target) {
  const ir::Ref<ir::Buffer> base = ComputedBase(tensor);
  const void* const data = base ? Runtime::Get().executor().DataOnHost(*base) : nullptr;
  if (data == nullptr || tensor.numel() == 0) return false;
  const size_t size = tensor.element_size();
  const auto offset = static_cast<size_t>(tensor.storage_offset());
  const size_t end =
      at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), size, offset);
  if (end > tensor.storage().nbytes()) return false;
  const char* const first = static_cast<const char*>(data) + offset * size;
  if (tensor.is_contiguous()) {
    std::memcpy(target, first, tensor.nbytes());
    return true;
  }
  const auto view_of = [&](const void* start) {
    return at::Tensor(
        tensor::HostView(tensor.scalar_type(), tensor.sizes(), const_cast<void*>(start)));
  };
  const at::Tensor shown = view_of(first);
  shown.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  const aten::KernelKeysGuard keys;
  view_of(target).copy_(shown);
  return true;
}

// The data of a storage that is read byte by byte, as torch.save does, if it is computed: no
// program runs then, which one of several processes could not run alone.
ir::Ref<ir::Buffer> ComputedBytes(const at::Tensor& tensor) {
  if (tensor.scalar_type() != at::kByte || !tensor.is_contiguous()) return {};
  return tensor.nbytes() == tensor.storage().nbytes() ? ComputedBase(tensor)
                                                      : ir::Ref<ir::Buffer>();
}

}  // namespace

c10::Scalar DownloadNumber(const at::Tensor& tensor) {
  const c10::ScalarType dtype = tensor.scalar_type();
  const bool is_word = dtype == at::kFloat || dtype == at::kDouble || dtype == at::kLong ||
                       dtype == at::kInt || dtype == at::kBool;
  if (!is_word || tensor.numel() != 1) return Download(tensor).item();
  // No tensor is made of it.
  uint64_t element;
  if (!CopyComputed(tensor, &element)) {
    Runtime::Get().executor().Download(*Materialize(tensor), &element, tensor.element_size());
  }
  return ops::ToScalar({dtype, &element});
}

at::Tensor Download(const at::Tensor& tensor) {
  at::Tensor result(at::detail::empty_cpu(tensor.sizes(), tensor.scalar_type()));
  if (CopyComputed(tensor, result.mutable_data_ptr())) return result;
  ir::Ref<ir::Buffer> buffer = ComputedBytes(tensor);
  if (!buffer) buffer = Materialize(tensor);
  Runtime::Get().executor().Download(*buffer, result.mutable_data_ptr(), result.nbytes());
  return result;
}

}  // namespace torch_xla_lite::record
