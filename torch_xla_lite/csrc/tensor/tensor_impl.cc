#include "torch_xla_lite/csrc/tensor/tensor_impl.h"

#include <utility>

#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"

namespace torch_xla_lite::tensor {
namespace {

constexpr c10::DispatchKeySet kKeys{c10::DispatchKey::PrivateUse1,
                                    c10::DispatchKey::AutogradPrivateUse1};

caffe2::TypeMeta TypeMetaOf(const ir::Shape* shape) {
  return c10::scalarTypeToTypeMeta(ScalarTypeOf(shape));
}

}  // namespace

thread_local bool XTensorImpl::claims_storage = false;

XTensorImpl::XTensorImpl(const c10::intrusive_ptr<Alias>& alias)
    : TensorImpl(c10::Storage(c10::intrusive_ptr<c10::StorageImpl>(alias)), kKeys,
                 TypeMetaOf(alias->shape())),
      shape_(ir::Ref<const ir::Shape>::Share(alias->shape())),
      growths_(alias->growths()) {
  set_sizes_contiguous(shape_->dims());
}

XTensorImpl::XTensorImpl(const XTensorImpl& source, c10::intrusive_ptr<ViewStep> step,
                         uint32_t growths, const ir::Shape* shape, const Layout& layout,
                         int64_t storage_offset)
    // An inference tensor if its source is one, wherever it is made.
    : TensorImpl(VIEW, c10::Storage(source.storage_), source.key_set(), TypeMetaOf(shape)),
      shape_(ir::Ref<const ir::Shape>::Share(shape)),
      is_row_major_(layout.strides.empty()),
      growths_(growths),
      step_(std::move(step)) {
  if (is_row_major_) {
    set_sizes_contiguous(shape->dims());
  } else {
    set_sizes_and_strides(shape->dims(), layout.strides);
  }
  storage_offset_ = storage_offset;
}

ir::Value XTensorImpl::Read() {
  const Alias& source = alias();
  if (step_ == nullptr && growths_ == source.growths()) return source.value();
  const bool is_pending = source.value().buffer() == nullptr;
  // Once the base has been computed, a view of it takes a few steps. A cached value from before
  // would be recomputed from the start, so that the graph of a loop would grow without bound.
  const bool is_superseded =
      cached_ && cached_from_pending_ && !is_pending && cached_.buffer() == nullptr;
  if (!cached_ || is_superseded || cached_generation_ != source.generation()) {
    cached_ = ReadThrough(step().get(), source.value());
    cached_generation_ = source.generation();
    cached_from_pending_ = is_pending;
  }
  return cached_;
}

ir::Value XTensorImpl::Write(ir::Value value) {
  Alias& target = alias();
  if (step_ == nullptr && growths_ == target.growths()) return target.SetValue(std::move(value));
  ir::Value base = WriteThrough(step().get(), target.value(), value);
  ir::Value replaced = target.SetValue(std::move(base));
  cached_ = std::move(value);
  cached_generation_ = target.generation();
  cached_from_pending_ = true;
  return replaced;
}

c10::Storage XTensorImpl::BecomeViewOf(const XTensorImpl& source) {
  c10::Storage before = std::exchange(storage_, c10::Storage(source.storage_));
  sizes_and_strides_ = source.sizes_and_strides_;
  storage_offset_ = source.storage_offset_;
  data_type_ = source.data_type_;
  refresh_numel();
  refresh_contiguous();
  shape_ = source.shape_;
  is_row_major_ = source.is_row_major_;
  growths_ = source.growths_;
  step_ = source.step_;
  cached_ = {};
  return before;
}

c10::intrusive_ptr<XTensorImpl> XTensorImpl::Twin() const {
  const Layout layout{is_row_major_ ? std::vector<int64_t>() : strides().vec(), 0};
  const runtime::RecordScope scope;
  return c10::intrusive_ptr<XTensorImpl>::unsafe_steal_from_new(
      new XTensorImpl(*this, step_, growths_, shape(), layout, storage_offset_));
}

template <typename Version>
c10::intrusive_ptr<c10::TensorImpl> XTensorImpl::Detached(Version&& version,
                                                          bool allow_metadata_change) const {
  auto copy = Twin();
  copy_tensor_metadata(this, copy.get(), std::forward<Version>(version), allow_metadata_change);
  return copy;
}

c10::intrusive_ptr<c10::TensorImpl> XTensorImpl::shallow_copy_and_detach(
    const c10::VariableVersion& version_counter, bool allow_metadata_change) const {
  return Detached(version_counter, allow_metadata_change);
}

c10::intrusive_ptr<c10::TensorImpl> XTensorImpl::shallow_copy_and_detach(
    c10::VariableVersion&& version_counter, bool allow_metadata_change) const {
  return Detached(std::move(version_counter), allow_metadata_change);
}

void XTensorImpl::shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& impl) {
  const XTensorImpl* source = From(impl.get());
  TORCH_CHECK(source != nullptr, "a tensor on jax cannot take over the data of one on ",
              impl->device(), ".\nMove it first:  other.to('jax')");
  c10::Storage before = storage_;  // Copying the metadata replaces it.
  const runtime::RecordScope scope;
  copy_tensor_metadata(source, this, version_counter(), allow_tensor_metadata_change());
  c10::Storage same = BecomeViewOf(*source);
}

at::TensorBase MakeTensor(ir::Value value) {
  auto alias = c10::make_intrusive<Alias>(value.shape());
  alias->SetValue(std::move(value));
  return at::detail::make_tensor_base<XTensorImpl>(alias);
}

}  // namespace torch_xla_lite::tensor
