// Kernels of torch for tensors that stay as they are: only their memory changes.
//
// What a call of an op does before its kernel runs, to find the kernel, to check dtypes and shapes,
// and to plan the loop (at::TensorIterator), costs ten times as much as the kernel on a small
// array. A KeptKernel has done it once.
//
//   auto kernel = KeepKernel("aten::add.Tensor", arguments, out);
//   kernel->Move(i, data);    // operand i of the loop, one of kernel->places(), is elsewhere now
//   kernel->Run();
//
// The tensors are those of the arguments, whose storages the caller points to other memory. They
// need no memory while a kernel is made.

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_KEPT_KERNEL_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_KEPT_KERNEL_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/core/Scalar.h>

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace torch_xla_lite::interpreter {

class KeptKernel {
 public:
  KeptKernel() = default;
  KeptKernel(const KeptKernel&) = delete;
  KeptKernel& operator=(const KeptKernel&) = delete;
  virtual ~KeptKernel() = default;

  // Where the operands of its loop are; empty if it reads the places of its tensors in each run.
  virtual std::vector<const void*> places() const { return {}; }
  virtual void Move(size_t /*operand*/, void* /*data*/) {}
  // Replaces a number among the arguments.
  virtual void SetNumber(size_t argument, const c10::Scalar& value) = 0;
  virtual void Run() = 0;
};

// nullptr for an op that has none here, or if it would not give `out` its sizes, strides and dtype.
// `arguments` are those of the op's schema.
std::unique_ptr<KeptKernel> KeepKernel(std::string_view op, torch::jit::Stack arguments,
                                       const at::Tensor& out);

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_KEPT_KERNEL_H_
