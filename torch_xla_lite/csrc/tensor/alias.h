// Alias: the storage of a tensor and of all its views, and the value that it stands for now.
//
// XLA's values never change; torch's tensors do. An Alias is what stays: tensors that share memory
// in torch share an Alias here. It holds the current value of the whole (the base, dense and
// row-major); a view is the Alias plus the steps that lead from the base to it
// (tensor/view_step.h). A write puts a new value into the Alias, and every tensor that shares it
// sees the change when it is read next.
//
// Memory can grow (resize_) and never shrinks: views made before would look behind its end. What
// was the base before it grew is a view of the new base from then on.
//
// It is a c10::StorageImpl, because torch compares storages to find out what shares memory
// (autograd's view tracking, deepcopy, state dicts). It has no data pointer.
//
//   auto alias = c10::make_intrusive<Alias>(shape);
//   alias->SetValue(value);         // under the record lock; generation() moves on
//   alias->value();                 // likewise

#ifndef TORCH_XLA_LITE_CSRC_TENSOR_ALIAS_H_
#define TORCH_XLA_LITE_CSRC_TENSOR_ALIAS_H_

#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <vector>

#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/runtime/live_values.h"
#include "torch_xla_lite/csrc/tensor/view_step.h"

namespace torch_xla_lite::tensor {

class Alias : public c10::StorageImpl {
 public:
  explicit Alias(const ir::Shape* shape);
  ~Alias() override;

  // All that follows is guarded by the record lock.

  // Of the base.
  const ir::Shape* shape() const { return shape_; }
  // Counts the writes, so that a view knows when what it read before is old.
  uint64_t generation() const { return generation_; }

  const ir::Value& value() const { return place_.value(); }
  // Takes a value of the same shape. Returns the one that was there.
  ir::Value SetValue(ir::Value value);

  // How often the memory has grown: which base the steps of a view start at.
  uint32_t growths() const { return growths_; }
  // Takes a larger value, and the steps that lead from it to what was the base so far.
  void Grow(ir::Value value, c10::intrusive_ptr<ViewStep> to_old_base);
  // The steps of a view that start at the base of an earlier time, from the base of now.
  c10::intrusive_ptr<ViewStep> StepsFromNow(const c10::intrusive_ptr<ViewStep>& steps,
                                            uint32_t growths) const;

 private:
  const ir::Shape* shape_;
  uint64_t generation_ = 0;
  uint32_t growths_ = 0;
  // After each growth, from the base that it made to the one before.
  std::vector<c10::intrusive_ptr<ViewStep>> to_old_bases_;
  runtime::LiveValue place_;
};

}  // namespace torch_xla_lite::tensor

#endif  // TORCH_XLA_LITE_CSRC_TENSOR_ALIAS_H_
