// Decodes the words of a recorded call (words.h) back into the arguments of the call.
//
// The words of a call site never change, only operands and runtime scalars do. So a CallPlan is
// built once per call site: it checks the words against the op's schema and stores the constant
// arguments. Filling it in costs little more than pushing the arguments.
//
//   CallPlan plan(op.schema(), words);          // raises if the words do not match the schema
//   torch::jit::Stack stack;
//   plan.Fill(operands, scalars, &stack);       // in the order of the words
//   op.callBoxed(&stack);
//
// Device arguments become the CPU, generators None. Thread-safe after construction: Fill() is
// const.

#ifndef TORCH_XLA_LITE_CSRC_OPS_DECODE_H_
#define TORCH_XLA_LITE_CSRC_OPS_DECODE_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace torch_xla_lite::ops {

// One runtime scalar: a value of `dtype` in the caller's memory.
struct ScalarView {
  c10::ScalarType dtype;
  const void* data;
};

// The value as torch's number type. Raises for dtypes that numbers cannot have.
c10::Scalar ToScalar(ScalarView view);

class CallPlan {
 public:
  // Words that follow those of the arguments: the recorder puts what is only part of the key there.
  enum class Rest { kNone, kIgnored };

  CallPlan(const c10::FunctionSchema& schema, std::span<const uint64_t> words,
           Rest rest = Rest::kNone);

  // The number of operands in the words.
  size_t operand_count() const { return operand_count_; }
  // The runtime scalars in the words: their dtypes as they were recorded.
  size_t scalar_count() const { return scalar_dtypes_.size(); }
  const std::vector<c10::ScalarType>& scalar_dtypes() const { return scalar_dtypes_; }

  // The argument at a place if the words of the call say it, otherwise None.
  const c10::IValue& ConstantAt(size_t place) const { return arguments_[place].constant; }

  // An argument that is a runtime scalar, or has one in a list: a number, or a tensor of no
  // dimensions.
  struct RuntimeNumber {
    size_t argument;
    std::optional<size_t> item;  // Of a list.
    bool is_tensor;
    bool wrapped;  // The tensor represents a number of Python.
  };
  // Those of the runtime scalars, in their order; nothing if one of them is no number.
  std::optional<std::vector<RuntimeNumber>> RuntimeNumbers() const;

  // Fill() then makes tensors of this dtype of Python's real numbers, as type promotion would. They
  // view the memory of the scalars, which are expected in this dtype.
  void BorrowNumbers(c10::ScalarType dtype);

  // Appends all arguments of the call to `stack`.
  void Fill(std::span<const at::Tensor> operands, std::span<const ScalarView> scalars,
            torch::jit::Stack* stack) const;

 private:
  // The source of an argument, or of an item of a list argument.
  enum class Source : uint8_t {
    kConstant,
    kOperand,  // operands[index]
    kNumber,   // scalars[index] as a number
    kBool,     // scalars[index] as the type in the schema
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
    bool wrapped = false;                                // kNumberTensor represents a Python number
    bool borrowed = false;                               // and views scalars[index]
    uint32_t index = 0;
    c10::IValue constant;
    std::vector<Argument> items;
  };
  class Builder;

  static c10::IValue Make(const Argument& argument, std::span<const at::Tensor> operands,
                          std::span<const ScalarView> scalars);

  std::vector<Argument> arguments_;
  size_t operand_count_ = 0;
  std::vector<c10::ScalarType> scalar_dtypes_;
};

}  // namespace torch_xla_lite::ops

#endif  // TORCH_XLA_LITE_CSRC_OPS_DECODE_H_
