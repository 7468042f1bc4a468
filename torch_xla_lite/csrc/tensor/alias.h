// Alias: the storage of a tensor and all its views, with its current value.
//
// XLA's values are immutable, torch's tensors are not. Tensors that share memory in torch share an
// Alias here. It holds the current value of the whole storage (the base, dense and row-major); a
// view is the Alias plus the steps that lead from the base to the view (tensor/view_step.h). A
// write replaces the value in the Alias, and every tensor that shares it sees the change when it is
// read next.
//
// A storage can grow (resize_) but never shrinks: existing views would exceed it. After it has
// grown, the old base is a view of the new base.
//
// It is a c10::StorageImpl, because torch compares storages to find out which tensors share memory
// (autograd's view tracking, deepcopy, state dicts). Libraries compare data pointers for the same
// purpose, so it has one: an address that identifies it and at which there is no memory.
//
//   auto alias = c10::make_intrusive<Alias>(shape);
//   alias->SetValue(value);         // under the record lock; generation() moves on
//   alias->value();                 // likewise

#ifndef TORCH_XLA_LITE_CSRC_TENSOR_ALIAS_H_
#define TORCH_XLA_LITE_CSRC_TENSOR_ALIAS_H_

#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/ir/record_lock.h"
#include "torch_xla_lite/csrc/ir/ref.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/ir/thread_annotations.h"
#include "torch_xla_lite/csrc/runtime/live_values.h"
#include "torch_xla_lite/csrc/tensor/view_step.h"

namespace torch_xla_lite::tensor {

class Alias : public c10::StorageImpl {
 public:
  explicit Alias(const ir::Shape* shape);
  ~Alias() override;

  // The aliases that this thread makes from now on get a number: that of the function that it
  // captures (captured_tensors.py), or 0.
  static void StampNew(uint32_t number);
  uint32_t stamp() const { return stamp_; }
  void set_stamp(uint32_t number) { stamp_ = number; }

  // The shape of the base.
  const ir::Shape* shape() const LITE_REQUIRES(ir::record_lock) { return shape_.get(); }
  // The number of writes, so that a view knows when its cached value is outdated.
  uint64_t generation() const LITE_REQUIRES(ir::record_lock) { return generation_; }

  const ir::Value& value() const LITE_REQUIRES(ir::record_lock) { return place_.value(); }
  // Where its data is, and what is written to it will be.
  ir::Placement placement() const LITE_REQUIRES(ir::record_lock) { return place_.placement(); }
  // Says where a pending value is to be when it is computed.
  void KeepAt(ir::Placement placement) LITE_REQUIRES(ir::record_lock) { place_.KeepAt(placement); }
  // Takes a value of the same shape. Returns the one that was there.
  ir::Value SetValue(ir::Value value) LITE_REQUIRES(ir::record_lock);

  // How often the storage has grown. It identifies the base at which the steps of a view start.
  uint32_t growths() const LITE_REQUIRES(ir::record_lock) { return growths_; }
  // Replaces the base by a larger one. `to_old_base`: the steps from the new base to the old one.
  void Grow(ir::Value value, c10::intrusive_ptr<ViewStep> to_old_base)
      LITE_REQUIRES(ir::record_lock);
  // Converts steps that start at an earlier base to steps that start at the current one.
  c10::intrusive_ptr<ViewStep> StepsFromNow(const c10::intrusive_ptr<ViewStep>& steps,
                                            uint32_t growths) const LITE_REQUIRES(ir::record_lock);

 private:
  std::atomic<uint32_t> stamp_;
  ir::Ref<const ir::Shape> shape_ LITE_GUARDED_BY(ir::record_lock);
  uint64_t generation_ LITE_GUARDED_BY(ir::record_lock) = 0;
  uint32_t growths_ LITE_GUARDED_BY(ir::record_lock) = 0;
  // For each growth: the steps from the new base to the one before.
  std::vector<c10::intrusive_ptr<ViewStep>> to_old_bases_ LITE_GUARDED_BY(ir::record_lock);
  runtime::LiveValue place_ LITE_GUARDED_BY(ir::record_lock);
};

}  // namespace torch_xla_lite::tensor

#endif  // TORCH_XLA_LITE_CSRC_TENSOR_ALIAS_H_
