#include "torch_xla_lite/csrc/aten/undeclared_writes.h"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <cstring>
#include <string>
#include <vector>

#include "torch_xla_lite/csrc/ops/map_tensors.h"

namespace torch_xla_lite::aten {
namespace {

// A tensor that must stay as it is, and a copy of it.
struct Kept {
  std::string argument;
  at::Tensor tensor;
  at::Tensor copy;

  // NaN equals itself.
  bool HasSameBytes() const {
    const at::Tensor dense = tensor.contiguous();
    return std::memcmp(dense.const_data_ptr(), copy.const_data_ptr(), copy.nbytes()) == 0;
  }
};

std::vector<Kept> KeepOperands(const c10::OperatorHandle& op, const torch::jit::Stack& arguments) {
  std::vector<Kept> kept;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::Argument& declared = op.schema().arguments()[i];
    if (declared.alias_info() != nullptr && declared.alias_info()->isWrite()) continue;
    ops::ForEachTensor(arguments[i], [&](const at::Tensor& tensor) {
      if (!tensor.defined() || tensor.numel() == 0) return;
      kept.push_back({declared.name(), tensor, tensor.clone(at::MemoryFormat::Contiguous)});
    });
  }
  return kept;
}

}  // namespace

bool IsForeign(const c10::OperatorHandle& op) {
  return !op.operator_name().name.starts_with("aten::");
}

void CallChecked(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::vector<Kept> kept = KeepOperands(op, *stack);
  op.callBoxed(stack);
  for (const Kept& operand : kept) {
    if (operand.HasSameBytes()) continue;
    operand.tensor.copy_(operand.copy);
    TORCH_CHECK(false, op.operator_name().name, " writes to its argument ", operand.argument,
                ", which its schema does not declare.\nDeclare it:  mutates_args=(\"",
                operand.argument, "\",)");
  }
}

}  // namespace torch_xla_lite::aten
