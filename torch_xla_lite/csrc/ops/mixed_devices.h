// The error of a call whose tensors are on two devices.
//
//   RefuseMixedDevices(info, arguments, weight);
//   // expected all tensors on one device, found jax:0 and cpu (in aten::linear).
//   // Argument 2 (weight, float32[2,3]) is a parameter on cpu. Move its module first:
//   //   model.to('jax')

#ifndef TORCH_XLA_LITE_CSRC_OPS_MIXED_DEVICES_H_
#define TORCH_XLA_LITE_CSRC_OPS_MIXED_DEVICES_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include "torch_xla_lite/csrc/ops/op_info.h"

namespace torch_xla_lite::ops {

// Throws. `foreign` is the argument, or an item of one, that is on another device.
[[noreturn]] void RefuseMixedDevices(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
                                     const at::Tensor& foreign);

}  // namespace torch_xla_lite::ops

#endif  // TORCH_XLA_LITE_CSRC_OPS_MIXED_DEVICES_H_
