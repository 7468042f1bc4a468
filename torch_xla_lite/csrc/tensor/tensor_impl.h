// XTensorImpl: a torch tensor on the device `jax`.
//
// It consists of an Alias (its storage), the view steps from the base of the Alias to the tensor
// (none for a base), and the sizes, strides and dtype that torch reports. Data exists only after a
// sync.
//
//   at::Tensor t = MakeTensor(value);                  // a new base
//   XTensorImpl* impl = XTensorImpl::From(t);          // nullptr for other tensors
//   const runtime::RecordScope scope;                  // takes the record lock
//   ir::Value v = impl->Read();                        // its current value
//   impl->Write(v2);                                   // in place, for all that share the Alias

#ifndef TORCH_XLA_LITE_CSRC_TENSOR_TENSOR_IMPL_H_
#define TORCH_XLA_LITE_CSRC_TENSOR_TENSOR_IMPL_H_

#include <ATen/core/TensorBase.h>
#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <typeinfo>
#include <utility>

#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/ir/record_lock.h"
#include "torch_xla_lite/csrc/ir/ref.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/ir/thread_annotations.h"
#include "torch_xla_lite/csrc/tensor/alias.h"
#include "torch_xla_lite/csrc/tensor/view_step.h"

namespace torch_xla_lite::tensor {

class XTensorImpl final : public c10::TensorImpl {
 public:
  // A base.
  explicit XTensorImpl(const c10::intrusive_ptr<Alias>& alias) LITE_REQUIRES(ir::record_lock);
  // A view of `source` whose last step is `step`; its sizes are those of `shape`.
  XTensorImpl(const XTensorImpl& source, c10::intrusive_ptr<ViewStep> step, const ir::Shape* shape,
              const Layout& layout, int64_t storage_offset) LITE_REQUIRES(ir::record_lock)
      : XTensorImpl(source, std::move(step), source.alias().growths(), shape, layout,
                    storage_offset) {}

  // nullptr if the tensor is not an XTensorImpl: fake tensors and wrappers have our dispatch key,
  // too.
  static XTensorImpl* From(const c10::TensorImpl* impl) {
    return typeid(*impl) == typeid(XTensorImpl)
               ? static_cast<XTensorImpl*>(const_cast<c10::TensorImpl*>(impl))
               : nullptr;
  }
  static XTensorImpl* From(const at::TensorBase& tensor) {
    return From(tensor.unsafeGetTensorImpl());
  }

  const ir::Shape* shape() const { return shape_.get(); }
  bool is_row_major() const { return is_row_major_; }
  Alias& alias() const { return static_cast<Alias&>(*storage_.unsafeGetStorageImpl()); }
  // A second tensor with the same storage, view steps and layout.
  c10::intrusive_ptr<XTensorImpl> Twin() const LITE_EXCLUDES(ir::record_lock);

  // The last of the steps from the base of the Alias to this tensor; null for the base itself.
  c10::intrusive_ptr<ViewStep> step() const LITE_REQUIRES(ir::record_lock) {
    return growths_ == alias().growths() ? step_ : alias().StepsFromNow(step_, growths_);
  }
  ir::Value Read() LITE_REQUIRES(ir::record_lock);
  // The value must have this tensor's shape. Returns the replaced value.
  ir::Value Write(ir::Value value) LITE_REQUIRES(ir::record_lock);

  // Makes this tensor share memory with `source` from now on (set_, .data =, in-place views).
  // Returns the old storage, which must be released without the lock.
  [[nodiscard]] c10::Storage BecomeViewOf(const XTensorImpl& source) LITE_REQUIRES(ir::record_lock);

  // False, so that torch refuses to access its bytes: the address of the Alias is only an id.
  bool has_storage() const override { return claims_storage; }
  // True in a thread while it imports TorchScript, which accepts no constant without a storage.
  static thread_local bool claims_storage;
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(
      const c10::VariableVersion& version_counter, bool allow_metadata_change) const override;
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(c10::VariableVersion&& version_counter,
                                                         bool allow_metadata_change) const override;
  void shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& impl) override;

 private:
  XTensorImpl(const XTensorImpl& source, c10::intrusive_ptr<ViewStep> step, uint32_t growths,
              const ir::Shape* shape, const Layout& layout, int64_t storage_offset);

  template <typename Version>
  c10::intrusive_ptr<TensorImpl> Detached(Version&& version, bool allow_metadata_change) const;

  ir::Ref<const ir::Shape> shape_;
  bool is_row_major_ = true;
  // growths() of the Alias when step_ was created: step_ starts at the base of that time.
  uint32_t growths_ LITE_GUARDED_BY(ir::record_lock) = 0;
  c10::intrusive_ptr<ViewStep> step_ LITE_GUARDED_BY(ir::record_lock);
  // The value of a view when it was last read, and whether its base was pending then.
  ir::Value cached_ LITE_GUARDED_BY(ir::record_lock);
  uint64_t cached_generation_ LITE_GUARDED_BY(ir::record_lock) = 0;
  bool cached_from_pending_ LITE_GUARDED_BY(ir::record_lock) = false;
};

// A new base with the given value.
at::TensorBase MakeTensor(ir::Value value) LITE_REQUIRES(ir::record_lock);

}  // namespace torch_xla_lite::tensor

#endif  // TORCH_XLA_LITE_CSRC_TENSOR_TENSOR_IMPL_H_
