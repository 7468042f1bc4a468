// Arithmetic without torch.
#pragma once

namespace torch_xla_lite {

inline constexpr int kOffset = 0;

int Twice(int value);

}  // namespace torch_xla_lite
