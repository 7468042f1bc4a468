#include "torch_xla_lite/csrc/aten/aten_call.h"

#include <ATen/core/function_schema.h>
#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include "torch_xla_lite/csrc/aten/kernel_keys.h"
#include "torch_xla_lite/csrc/aten/out_overload.h"
#include "torch_xla_lite/csrc/aten/undeclared_writes.h"
#include "torch_xla_lite/csrc/ops/map_tensors.h"
#include "torch_xla_lite/csrc/ops/op_facts.h"
#include "torch_xla_lite/csrc/ops/op_name.h"

namespace torch_xla_lite::aten {
namespace {

c10::OperatorHandle OpOf(std::string_view name) {
  auto op = ops::FindOp(name);
  TORCH_CHECK(op.has_value(), "torch has no op ", name, ".");
  TORCH_CHECK(!op->hasTag(at::Tag::nondeterministic_seeded), name,
              " draws random numbers, which must not come from the CPU's generator.\n"
              "Write a lowering for it in torch_xla_lite/lowering.");
  return *op;
}

std::vector<size_t> WrittenArguments(const c10::FunctionSchema& schema, const ops::OpFacts& facts) {
  std::vector<size_t> written;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    const bool is_mutable = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    if (is_mutable || (facts.writes_statistics && argument.name().starts_with("running_"))) {
      written.push_back(i);
    }
  }
  return written;
}

}  // namespace

AtenCall::AtenCall(const c10::OperatorHandle& op, std::span<const uint64_t> words,
                   ops::CallPlan::Rest rest)
    : op_(op), plan_(op.schema(), words, rest) {
  const ops::OpFacts& facts = ops::FactsOf(ops::FullName(op.operator_name()));
  condition_ = FindCondition(facts.kernel_needs);
  written_ = WrittenArguments(op.schema(), facts);
  if (IsForeign(op)) is_new_ = std::make_shared<std::atomic<bool>>(true);
}

AtenCall::AtenCall(std::string_view op, std::span<const uint64_t> words, std::string_view defined)
    : AtenCall(OpOf(op), words, ops::CallPlan::Rest::kNone) {
  defined_ = defined;
  const bool all_defined =
      defined.find('0') == defined.npos && defined.size() == op_.schema().returns().size();
  if (all_defined && written_.empty()) out_op_ = FindOutOverload(op_);
}

void AtenCall::Run(std::span<const at::Tensor> operands, std::span<const ops::ScalarView> scalars,
                   std::span<const at::Tensor> outputs) const {
  const KernelKeysGuard keys;
  torch::jit::Stack stack = Arguments(operands, scalars);
  Check(stack);
  if (out_op_.has_value()) {
    stack.insert(stack.end(), outputs.begin(), outputs.end());
    out_op_->callBoxed(&stack);
  } else {
    Call(&stack);
    Store(stack, outputs);
  }
}

void AtenCall::Call(torch::jit::Stack* stack) const {
  if (is_new_ == nullptr || !*is_new_) return op_.callBoxed(stack);
  CallChecked(op_, stack);
  *is_new_ = false;
}

torch::jit::Stack AtenCall::Arguments(std::span<const at::Tensor> operands,
                                      std::span<const ops::ScalarView> scalars) const {
  torch::jit::Stack stack;
  // Results may follow the arguments.
  stack.reserve(op_.schema().arguments().size() + op_.schema().returns().size());
  plan_.Fill(operands, scalars, &stack);
  const auto copy = [](const at::Tensor& tensor) { return tensor.clone(); };
  for (const size_t i : written_) stack[i] = ops::MapArgument(stack[i], at::kCPU, copy);
  return stack;
}

void AtenCall::Check(const torch::jit::Stack& arguments) const {
  TORCH_CHECK(condition_ == nullptr || condition_(arguments),
              "has indices, lengths or offsets that do not fit its other tensors.");
}

std::vector<at::Tensor> AtenCall::Results(const torch::jit::Stack& returned) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(returned.size());
  for (const c10::IValue& value : returned) {
    if (value.isTensorList()) {
      for (const at::Tensor& item : value.toTensorVector()) tensors.push_back(item);
    } else {
      tensors.push_back(value.isTensor() ? value.toTensor() : at::Tensor());
    }
  }
  return tensors;
}

void AtenCall::CheckResult(const at::Tensor& result, size_t index, at::IntArrayRef sizes,
                           c10::ScalarType dtype) const {
  const bool is_foreign = is_new_ != nullptr;
  const char* expected = is_foreign ? ", but its fake function gives " : ", but the graph expects ";
  const auto expect = [&](bool condition, const auto&... differs) {
    if (!condition) throw UnexpectedResults(c10::str("output ", index, " ", differs..., "."));
  };
  expect(result.defined(), "is undefined", expected, "a tensor");
  expect(result.sizes() == sizes, "has shape ", result.sizes(), expected, sizes);
  expect(is_foreign ? result.scalar_type() == dtype : c10::canCast(result.scalar_type(), dtype),
         "has dtype ", result.scalar_type(), expected, dtype);
}

void AtenCall::Store(const torch::jit::Stack& returned, std::span<const at::Tensor> outputs) const {
  const std::vector<at::Tensor> results = Results(returned);
  if (results.size() != defined_.size()) {
    throw UnexpectedResults(c10::str("returns ", results.size(), " outputs, but the graph expects ",
                                     defined_.size(), "."));
  }
  size_t stored = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    if (defined_[i] == '0') continue;
    const at::Tensor& output = outputs[stored++];
    CheckResult(results[i], i, output.sizes(), output.scalar_type());
    output.copy_(results[i]);
  }
}

}  // namespace torch_xla_lite::aten
