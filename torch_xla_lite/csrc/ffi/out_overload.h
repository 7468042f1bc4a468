// The out= overload of an op: the same computation, with the results written into given tensors.
//
//   FindOutOverload(add_tensor);    // aten::add.out
//   FindOutOverload(huber_loss);    // nothing: not pointwise
//
// Thread-safe.

#ifndef TORCH_XLA_LITE_CSRC_FFI_OUT_OVERLOAD_H_
#define TORCH_XLA_LITE_CSRC_FFI_OUT_OVERLOAD_H_

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>

namespace torch_xla_lite::ffi {

// The overload that takes the arguments of the pointwise op `op`, then one tensor per output, and
// has a CPU kernel of its own. Nothing where there is none: a generated out= kernel calls the
// functional one and copies, which the caller can do better. Nothing for other ops either: some
// kernels keep intermediate results of another shape in the output (the losses), which XLA's memory
// is not made for, and beside their work a copy is small.
std::optional<c10::OperatorHandle> FindOutOverload(const c10::OperatorHandle& op);

}  // namespace torch_xla_lite::ffi

#endif  // TORCH_XLA_LITE_CSRC_FFI_OUT_OVERLOAD_H_
