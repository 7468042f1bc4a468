// Alias: the storage of a tensor and of all its views, and the value that it stands for now.
//
// XLA's values never change; torch's tensors do. An Alias is what stays: tensors that share memory
// in torch share an Alias here. It holds the current value of the whole (the base, dense and
// row-major); a view is the Alias plus the steps that lead from the base to it
// (tensor/view_step.h). A write puts a new value into the Alias, and every tensor that shares it
// sees the change when it is read next.
//
// It is a c10::StorageImpl, because torch compares storages to find out what shares memory
// (autograd's view tracking, deepcopy, state dicts). It has no data pointer.
//
//   auto alias = c10::make_intrusive<Alias>(shape, value);
//   alias->value();                 // under the record lock
//   alias->SetValue(new_value);     // likewise; generation() moves on

#ifndef TORCH_XLA_LITE_CSRC_TENSOR_ALIAS_H_
#define TORCH_XLA_LITE_CSRC_TENSOR_ALIAS_H_

#include <c10/core/StorageImpl.h>

#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/runtime/live_values.h"

namespace torch_xla_lite::tensor {

class Alias : public c10::StorageImpl {
 public:
  explicit Alias(const ir::Shape* shape);
  ~Alias() override;

  // Of the base.
  const ir::Shape* shape() const { return shape_; }
  // Counts the writes, so that a view knows when what it read before is old.
  uint64_t generation() const { return generation_; }

  // Guarded by the record lock.
  const ir::Value& value() const { return place_.value(); }
  // Returns the value that was there. The shape may differ (resize_, out=).
  ir::Value SetValue(ir::Value value);

 private:
  const ir::Shape* shape_;
  uint64_t generation_ = 0;
  runtime::LiveValue place_;
};

}  // namespace torch_xla_lite::tensor

#endif  // TORCH_XLA_LITE_CSRC_TENSOR_ALIAS_H_
