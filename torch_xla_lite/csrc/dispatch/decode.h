// From the words of a recorded call back to a call: the reader of words.h.
//
// The words stay the same from run to run of a graph, only operands and runtime scalars change. So
// a CallPlan is made once per call site: it checks the words against the op's schema and keeps the
// constant arguments ready. Filling it in costs little more than pushing the arguments.
//
//   CallPlan plan(op.schema(), words);          // raises when the words do not fit the schema
//   torch::jit::Stack stack;
//   plan.Fill(operands, scalars, &stack);       // in the order in which the words name them
//   op.callBoxed(&stack);
//
// Device arguments become the CPU, generators None. Thread-safe after construction: Fill() is
// const.

#ifndef TORCH_XLA_LITE_CSRC_DISPATCH_DECODE_H_
#define TORCH_XLA_LITE_CSRC_DISPATCH_DECODE_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace torch_xla_lite::dispatch {

// One runtime scalar: a value of `dtype` in the caller's memory.
struct ScalarView {
  c10::ScalarType dtype;
  const void* data;
};

// The value as torch's number type. Raises for a dtype that no number has.
c10::Scalar ToScalar(ScalarView view);

class CallPlan {
 public:
  CallPlan(const c10::FunctionSchema& schema, std::span<const uint64_t> words);

  // How many of each the words name.
  size_t operand_count() const { return operand_count_; }
  size_t scalar_count() const { return scalar_count_; }

  // Appends all arguments of the call to `stack`.
  void Fill(std::span<const at::Tensor> operands, std::span<const ScalarView> scalars,
            torch::jit::Stack* stack) const;

 private:
  // How an argument, or an item of a list argument, comes about.
  enum class Source : uint8_t {
    kConstant,
    kOperand,  // operands[index]
    kNumber,   // scalars[index] as a number
    kBool,     // scalars[index] as the type that the schema asks for
    kInt,
    kFloat,
    kNumberTensor,  // scalars[index] as a 0-d tensor
    kTensors,       // Tensor[] of the items
    kMaybeTensors,  // Tensor?[] of the items
    kNumbers,       // Scalar[] of the items
  };
  struct Argument {
    Source source = Source::kConstant;
    c10::ScalarType dtype = c10::ScalarType::Undefined;  // of kNumberTensor
    bool wrapped = false;                                // kNumberTensor stands for a Python number
    uint32_t index = 0;
    c10::IValue constant;
    std::vector<Argument> items;
  };
  class Builder;

  static c10::IValue Make(const Argument& argument, std::span<const at::Tensor> operands,
                          std::span<const ScalarView> scalars);

  std::vector<Argument> arguments_;
  size_t operand_count_ = 0;
  size_t scalar_count_ = 0;
};

}  // namespace torch_xla_lite::dispatch

#endif  // TORCH_XLA_LITE_CSRC_DISPATCH_DECODE_H_
