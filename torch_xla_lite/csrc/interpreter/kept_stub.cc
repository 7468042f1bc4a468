// The only file that names stubs of torch. A stub takes as many pointers as torch was built for
// kinds of processors, which its header knows by these macros.

#if defined(__x86_64__)
#define HAVE_AVX2_CPU_DEFINITION
#define HAVE_AVX512_CPU_DEFINITION
#endif

#include "torch_xla_lite/csrc/interpreter/kept_stub.h"

#include <ATen/TensorIterator.h>
#include <ATen/core/jit_type.h>
#include <ATen/native/ReduceOps.h>
#include <ATen/native/TensorCompare.h>
#include <c10/core/WrapDimMinimal.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace torch_xla_lite::interpreter {
namespace {

using torch::jit::Stack;

#if defined(__x86_64__)
class KeptStub final : public KeptKernel {
 public:
  using Function = void (*)(at::TensorIterator&);

  KeptStub(at::TensorIterator loop, Function function)
      : loop_(std::move(loop)), function_(function) {}

  std::vector<const void*> places() const override {
    std::vector<const void*> found;
    for (int i = 0; i < loop_.ntensors(); ++i) found.push_back(loop_.data_ptr(i));
    return found;
  }
  void Move(size_t operand, void* data) override {
    loop_.unsafe_replace_operand(static_cast<int64_t>(operand), data);
  }
  void SetNumber(size_t /*argument*/, const c10::Scalar& /*value*/) override {}
  void Run() override { function_(loop_); }

 private:
  at::TensorIterator loop_;
  const Function function_;
};

// (condition, self, other)
std::unique_ptr<KeptKernel> KeepWhere(const Stack& arguments, const at::Tensor& out) {
  const at::Tensor condition = arguments[0].toTensor(), self = arguments[1].toTensor(),
                   other = arguments[2].toTensor();
  const bool fits = condition.scalar_type() == at::kBool &&
                    self.scalar_type() == out.scalar_type() &&
                    other.scalar_type() == out.scalar_type();
  if (!fits) return nullptr;
  auto loop = at::TensorIteratorConfig()
                  .check_all_same_dtype(false)
                  .resize_outputs(false)
                  .add_owned_output(out)
                  .add_owned_const_input(condition)
                  .add_owned_const_input(self)
                  .add_owned_const_input(other)
                  .build();
  return std::make_unique<KeptStub>(
      std::move(loop), [](at::TensorIterator& it) { at::native::where_kernel(at::kCPU, it); });
}

// (self, dim, keepdim, dtype)
std::unique_ptr<KeptKernel> KeepSum(const Stack& arguments, const at::Tensor& out) {
  const at::Tensor self = arguments[0].toTensor();
  const bool is_wide = out.scalar_type() == at::kFloat || out.scalar_type() == at::kDouble;
  if (!is_wide || self.scalar_type() != out.scalar_type() || self.numel() == 0 || self.dim() == 0) {
    return nullptr;
  }
  std::vector<bool> is_reduced(self.dim(), false);
  const auto dims = arguments[1].isNone() ? std::vector<int64_t>() : arguments[1].toIntVector();
  for (const int64_t dim : dims) is_reduced[c10::maybe_wrap_dim(dim, self.dim())] = true;
  if (dims.empty()) is_reduced.assign(self.dim(), true);
  // The result with all dimensions, of which the reduced ones stay in place.
  std::vector<int64_t> sizes, strides;
  const bool keeps = arguments[2].toBool();
  int64_t place = 0;
  for (int64_t dim = 0; dim < self.dim(); ++dim) {
    sizes.push_back(is_reduced[dim] ? 1 : self.size(dim));
    strides.push_back(is_reduced[dim] ? 0 : out.stride(place));
    if (keeps || !is_reduced[dim]) ++place;
  }
  if (place != out.dim()) return nullptr;
  at::Tensor result = out.as_strided(sizes, strides);
  auto loop = at::TensorIterator::reduce_op(result, self);
  return std::make_unique<KeptStub>(
      std::move(loop), [](at::TensorIterator& it) { at::native::sum_stub(at::kCPU, it); });
}
#endif

}  // namespace

std::unique_ptr<KeptKernel> KeepStub(std::string_view op, const Stack& arguments,
                                     const at::Tensor& out) {
#if defined(__x86_64__)
  if (op == "aten::where.self") return KeepWhere(arguments, out);
  if (op == "aten::sum.dim_IntList") return KeepSum(arguments, out);
#endif
  return nullptr;
}

}  // namespace torch_xla_lite::interpreter
