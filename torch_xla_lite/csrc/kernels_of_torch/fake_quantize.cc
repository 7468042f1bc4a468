#include "torch_xla_lite/csrc/kernels_of_torch/fake_quantize.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>

#include "torch_xla_lite/csrc/record/record.h"

namespace torch_xla_lite::kernels_of_torch {

void ObserveAndFakeQuantize(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                            torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 13);
  const at::Tensor running_min = arguments[3].toTensor();
  const bool is_per_channel = arguments[11].toBool();
  // torch's kernel resizes empty statistics if it observes. A graph has fixed sizes.
  if (is_per_channel && running_min.numel() == 0 && arguments[1].toTensor().item().toBool()) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const int64_t channels = arguments[0].toTensor().size(arguments[10].toInt());
    running_min.resize_({channels}).fill_(kInfinity);
    arguments[4].toTensor().resize_({channels}).fill_(-kInfinity);
    arguments[5].toTensor().resize_({channels});
    arguments[6].toTensor().resize_({channels});
  }
  static auto* recorder = new record::RecordKernel;
  (*recorder)(op, keys, stack);
}

}  // namespace torch_xla_lite::kernels_of_torch
