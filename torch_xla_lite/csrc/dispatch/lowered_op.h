// LoweredOp: an op that has a lowering of its own.
//
//   SetLoweredOps({{"aten::add.Tensor", LoweredOp(/*needs_constants=*/false)}});

#ifndef TORCH_XLA_LITE_CSRC_DISPATCH_LOWERED_OP_H_
#define TORCH_XLA_LITE_CSRC_DISPATCH_LOWERED_OP_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace torch_xla_lite::dispatch {

// What the recorder has to know of an op's lowering.
struct LoweredOp {
  LoweredOp(bool needs_constants, uint64_t refused_dtypes = 0,  // NOLINT: most are a bool
            uint64_t refused_results = 0, std::vector<std::string> runtime_floats = {})
      : needs_constants(needs_constants),
        refused_dtypes(refused_dtypes),
        refused_results(refused_results),
        runtime_floats(std::move(runtime_floats)) {}

  bool needs_constants;  // Scalar arguments are constants.
  // A bit for each c10::ScalarType that the first operand cannot have, and the first result.
  uint64_t refused_dtypes;
  uint64_t refused_results;
  // Arguments of type float that are runtime scalars all the same.
  std::vector<std::string> runtime_floats;
};

// The ops that have a lowering of their own, by the name of their functional form.
using LoweredOps = std::unordered_map<std::string, LoweredOp>;

}  // namespace torch_xla_lite::dispatch

#endif  // TORCH_XLA_LITE_CSRC_DISPATCH_LOWERED_OP_H_
