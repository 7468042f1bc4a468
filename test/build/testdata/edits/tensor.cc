#include "torch_xla_lite/tensor.h"

#include "torch_xla_lite/core.h"

namespace torch_xla_lite {

int TwiceTheNumberOf(c10::DeviceType type) { return Twice(static_cast<int>(type)) - kOffset; }

}  // namespace torch_xla_lite
