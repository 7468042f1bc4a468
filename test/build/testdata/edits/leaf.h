// What the Python module calls.
#pragma once

namespace torch_xla_lite {

int Leaf();

}  // namespace torch_xla_lite
