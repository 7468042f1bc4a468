// Arithmetic on torch's types.
#pragma once

#include <c10/core/DeviceType.h>

namespace torch_xla_lite {

int TwiceTheNumberOf(c10::DeviceType type);

}  // namespace torch_xla_lite
