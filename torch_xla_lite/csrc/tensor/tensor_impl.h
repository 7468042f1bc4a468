// XTensorImpl: a torch tensor on the device `jax`.
//
// It is an Alias (what it shares memory with), the view steps from the Alias' base to it (none for
// a base), and the sizes, strides and dtype that torch shows. Data exists only after a sync.
//
//   at::Tensor t = MakeTensor(value);                  // a new base
//   XTensorImpl* impl = XTensorImpl::From(t);          // nullptr for tensors of other kinds
//   std::lock_guard lock(runtime.record_lock());
//   ir::Value v = impl->Read();                        // what it stands for now
//   impl->Write(v2);                                   // in place, for all that share the Alias

#ifndef TORCH_XLA_LITE_CSRC_TENSOR_TENSOR_IMPL_H_
#define TORCH_XLA_LITE_CSRC_TENSOR_TENSOR_IMPL_H_

#include <ATen/core/TensorBase.h>
#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <typeinfo>
#include <utility>

#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/tensor/alias.h"
#include "torch_xla_lite/csrc/tensor/view_step.h"

namespace torch_xla_lite::tensor {

class XTensorImpl final : public c10::TensorImpl {
 public:
  // A base.
  explicit XTensorImpl(const c10::intrusive_ptr<Alias>& alias);
  // A view of `source` whose last step is `step`; its sizes are those of `shape`.
  XTensorImpl(const XTensorImpl& source, c10::intrusive_ptr<ViewStep> step, const ir::Shape* shape,
              const Layout& layout, int64_t storage_offset)
      : XTensorImpl(source, std::move(step), source.alias().growths(), shape, layout,
                    storage_offset) {}

  // nullptr unless the tensor is one of ours: fake tensors and wrappers carry our dispatch key but
  // are not.
  static XTensorImpl* From(const c10::TensorImpl* impl) {
    return typeid(*impl) == typeid(XTensorImpl)
               ? static_cast<XTensorImpl*>(const_cast<c10::TensorImpl*>(impl))
               : nullptr;
  }
  static XTensorImpl* From(const at::TensorBase& tensor) {
    return From(tensor.unsafeGetTensorImpl());
  }

  const ir::Shape* shape() const { return shape_; }
  bool is_row_major() const { return is_row_major_; }
  Alias& alias() const { return static_cast<Alias&>(*storage_.unsafeGetStorageImpl()); }
  // A second tensor on the same memory, seen in the same way.
  c10::intrusive_ptr<XTensorImpl> Twin() const;

  // All that follows is guarded by the record lock, and so is making a tensor.

  // The last one of those that lead here from the base of the Alias; null for the base itself.
  c10::intrusive_ptr<ViewStep> step() const {
    return growths_ == alias().growths() ? step_ : alias().StepsFromNow(step_, growths_);
  }
  ir::Value Read();
  // The value has this tensor's shape. Returns what it replaced.
  ir::Value Write(ir::Value value);

  // Makes this tensor share memory with `source` from now on (set_, .data =, in-place views).
  // Returns the storage that it had, which may only die without the lock.
  [[nodiscard]] c10::Storage BecomeViewOf(const XTensorImpl& source);

  // False, so that torch does not look for bytes behind it (pickle takes the numpy path).
  bool has_storage() const override { return false; }
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

  const ir::Shape* shape_;
  bool is_row_major_ = true;
  // Of the Alias when step_ was made, which starts at its base of that time.
  uint32_t growths_ = 0;
  c10::intrusive_ptr<ViewStep> step_;
  // What a view was when it was read last, and whether its base was pending then.
  ir::Value cached_;
  uint64_t cached_generation_ = 0;
  bool cached_from_pending_ = false;
};

// A new base that stands for the value. The caller holds the record lock.
at::TensorBase MakeTensor(ir::Value value);

}  // namespace torch_xla_lite::tensor

#endif  // TORCH_XLA_LITE_CSRC_TENSOR_TENSOR_IMPL_H_
