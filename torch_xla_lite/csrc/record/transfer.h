// Copies tensors between the CPU and the device.
//
//   at::Tensor on_jax = Upload(cpu_tensor);      // a copy; returns at once
//   at::Tensor on_cpu = Download(on_jax);        // computes what is pending and waits for it
//
// Both copy: torch and XLA may each change or free their own memory at any time.

#ifndef TORCH_XLA_LITE_CSRC_RECORD_TRANSFER_H_
#define TORCH_XLA_LITE_CSRC_RECORD_TRANSFER_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include "torch_xla_lite/csrc/ir/node.h"

namespace torch_xla_lite::record {

// Computes a tensor on jax. Takes the record lock.
ir::Ref<ir::Buffer> Materialize(const at::Tensor& tensor);

at::Tensor Upload(const at::Tensor& cpu_tensor);
at::Tensor Download(const at::Tensor& tensor);
// The only element of a tensor. Raises torch's error if it has several.
c10::Scalar DownloadNumber(const at::Tensor& tensor);

// `value`, or a copy of it where the storage of `target` is, if that is on a mesh and all of it is
// about to be replaced by a value that is computed.
at::Tensor PlacedAs(const at::Tensor& target, const at::Tensor& value);

}  // namespace torch_xla_lite::record

#endif  // TORCH_XLA_LITE_CSRC_RECORD_TRANSFER_H_
