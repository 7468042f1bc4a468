#include "torch_xla_lite/core.h"

#include "torch_xla_lite/core_private.h"

namespace torch_xla_lite {

int Twice(int value) { return kFactor * value + kOffset; }

}  // namespace torch_xla_lite
