#include "torch_xla_lite/csrc/ffi/aten_call.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>
#include <c10/util/Exception.h>

#include <cstring>
#include <vector>

#include "torch_xla_lite/csrc/ffi/out_overload.h"
#include "torch_xla_lite/csrc/ops/kernel_keys.h"
#include "torch_xla_lite/csrc/ops/op_facts.h"
#include "torch_xla_lite/csrc/ops/op_name.h"

namespace torch_xla_lite::ffi {
namespace {

using torch::jit::Stack;

c10::OperatorHandle FindOp(std::string_view name) {
  auto op = dispatch::FindOp(name);
  TORCH_CHECK(op.has_value(), "torch has no op ", name, ".");
  TORCH_CHECK(!op->hasTag(at::Tag::nondeterministic_seeded), name,
              " draws random numbers, which must not come from the CPU's generator.\n"
              "Write a lowering for it in torch_xla_lite/lowering.");
  return *op;
}

bool WritesOperands(const c10::OperatorHandle& op) {
  return op.schema().is_mutable() ||
         dispatch::FactsOf(dispatch::FullName(op.operator_name())).writes_statistics;
}

}  // namespace

AtenCall::AtenCall(std::string_view op, std::span<const uint64_t> words, std::string_view defined)
    : name_(op),
      op_(FindOp(op)),
      plan_(op_.schema(), words),
      defined_(defined),
      copy_operands_(WritesOperands(op_)),
      condition_(dispatch::FindCondition(dispatch::FactsOf(op).kernel_needs)) {
  const bool all_defined = defined_.find('0') == std::string::npos;
  if (all_defined && !copy_operands_ && defined_.size() == op_.schema().returns().size()) {
    out_op_ = FindOutOverload(op_);
  }
}

void AtenCall::Run(std::span<const at::Tensor> operands,
                   std::span<const dispatch::ScalarView> scalars,
                   std::span<const at::Tensor> outputs) const {
  const dispatch::KernelKeysGuard keys;
  Stack stack;
  stack.reserve(op_.schema().arguments().size() + outputs.size());
  if (copy_operands_) {
    std::vector<at::Tensor> copies;
    copies.reserve(operands.size());
    for (const at::Tensor& operand : operands) copies.push_back(operand.clone());
    plan_.Fill(copies, scalars, &stack);
  } else {
    plan_.Fill(operands, scalars, &stack);
  }
  TORCH_CHECK(condition_ == nullptr || condition_(stack),
              "has indices, lengths or offsets that do not fit its other tensors.");
  if (out_op_.has_value()) {
    RunInto(&stack, outputs);
  } else {
    RunAndCopy(&stack, outputs);
  }
}

void AtenCall::RunInto(Stack* stack, std::span<const at::Tensor> outputs) const {
  for (const at::Tensor& output : outputs) stack->emplace_back(output);
  out_op_->callBoxed(stack);
}

void AtenCall::RunAndCopy(Stack* stack, std::span<const at::Tensor> outputs) const {
  op_.callBoxed(stack);
  size_t position = 0;
  size_t copied = 0;
  auto take = [&](const at::Tensor& result) {
    TORCH_CHECK(position < defined_.size(), "returns more outputs than the graph expects (",
                defined_.size(), ").");
    if (defined_[position++] == '0') return;
    TORCH_CHECK(result.defined(), "leaves output ", position - 1,
                " undefined, but the graph expects a tensor.");
    const at::Tensor& output = outputs[copied++];
    TORCH_CHECK(result.sizes() == output.sizes(), "returns a tensor of shape ", result.sizes(),
                " as output ", position - 1, ", but the graph expects ", output.sizes(), ".");
    TORCH_CHECK(c10::canCast(result.scalar_type(), output.scalar_type()), "returns dtype ",
                result.scalar_type(), " as output ", position - 1, ", but the graph expects ",
                output.scalar_type(), ".");
    output.copy_(result);
  };
  for (const c10::IValue& value : *stack) {
    if (value.isTensorList()) {
      for (const at::Tensor& item : value.toTensorVector()) take(item);
    } else if (value.isTensor()) {
      take(value.toTensor());
    } else {
      // A number among the outputs is not a value of the graph.
      take(at::Tensor());
    }
  }
  TORCH_CHECK(copied == outputs.size(), "returns fewer outputs than the graph expects (",
              outputs.size(), ").");
}

}  // namespace torch_xla_lite::ffi
