// Finds the out= overload of an op, which writes its results into given tensors.
//
//   FindOutOverload(add_tensor);    // aten::add.out
//   FindOutOverload(huber_loss);    // std::nullopt: not pointwise
//
// Thread-safe.

#ifndef TORCH_XLA_LITE_CSRC_ATEN_OUT_OVERLOAD_H_
#define TORCH_XLA_LITE_CSRC_ATEN_OUT_OVERLOAD_H_

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>

namespace torch_xla_lite::aten {

// The overload that takes the arguments of the pointwise op `op`, then one tensor per output, if it
// has its own CPU kernel: a generated out= kernel would call the functional one and copy, which the
// caller can do more cheaply. std::nullopt for ops that are not pointwise: some of their kernels
// (the losses) store intermediate results of another shape in the output, for which XLA's buffer is
// too small, and the cost of a copy is small beside their work.
std::optional<c10::OperatorHandle> FindOutOverload(const c10::OperatorHandle& op);

}  // namespace torch_xla_lite::aten

#endif  // TORCH_XLA_LITE_CSRC_ATEN_OUT_OVERLOAD_H_
