// Tensors on jax and views of them, made of toy ops (test/csrc/ir/toy_ops.h).
//
//   at::TensorBase x = TensorOf({1, 2, 3, 4});
//   at::TensorBase half = ViewOf(x, "halves", {}, /*output=*/1);
//   Read(half);      // {3, 4}
//   Write(half, {5, 6});

#ifndef TORCH_XLA_LITE_TEST_CSRC_TENSOR_TOY_VIEWS_H_
#define TORCH_XLA_LITE_TEST_CSRC_TENSOR_TOY_VIEWS_H_

#include <ATen/core/TensorBase.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <string>
#include <vector>

#include "test/csrc/ir/toy_ops.h"
#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/tensor/op_signature.h"
#include "torch_xla_lite/csrc/tensor/view_step.h"

namespace torch_xla_lite::tensor {

// One object for each op and size.
const OpSignature* ViewSignature(const std::string& op, size_t size);

at::TensorBase TensorOf(ir::toy::Data data);
at::TensorBase ViewOf(const at::TensorBase& source, const std::string& op,
                      std::vector<uint64_t> scalars = {}, uint32_t output = 0);

// The tensor's value. Takes the record lock.
ir::Value ValueOf(const at::TensorBase& tensor);
void SetValue(const at::TensorBase& tensor, ir::Value value);

// The data of a tensor, computed by the runtime and its executor.
ir::toy::Data Read(const at::TensorBase& tensor);
void Write(const at::TensorBase& tensor, ir::toy::Data data);

}  // namespace torch_xla_lite::tensor

#endif  // TORCH_XLA_LITE_TEST_CSRC_TENSOR_TOY_VIEWS_H_
