#include "torch_xla_lite/csrc/kernels_of_torch/view_kernels.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/ops/call.h"
#include "torch_xla_lite/csrc/record/record.h"
#include "torch_xla_lite/csrc/tensor/tensor_impl.h"

namespace torch_xla_lite::kernels_of_torch {
namespace {

using c10::DispatchKeySet;
using c10::OperatorHandle;
using tensor::XTensorImpl;
using torch::jit::Stack;

// detach(Tensor(a) self) -> Tensor(a), and other ops that return an alias of their argument
void Share(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const at::Tensor self = torch::jit::pop(*stack).toTensor();
  stack->emplace_back(at::Tensor(XTensorImpl::From(self)->Twin()));
}

// Reading one result of a view op computes all of them. That of a few is one op of XLA; many are
// views of their own, so that reading n of them is not n times n slices.
constexpr int64_t kMostResultsOfOneView = 8;

// So many are at constant places, which XLA likes. Of more, each is read alone, as a loop over the
// numbers of a tensor does: at places that vary all these reads are one graph.
constexpr int64_t kMostConstantPlaces = 256;

bool HasDim(const at::Tensor& tensor, int64_t dim) {
  return -tensor.dim() <= dim && dim < tensor.dim();
}

// unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]
void Unbind(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  static auto* recorder = new record::RecordKernel;
  const auto arguments = torch::jit::last(*stack, 2);
  const at::Tensor self = arguments[0].toTensor();
  const int64_t dim = arguments[1].toInt();
  if (!HasDim(self, dim) || self.size(dim) <= kMostResultsOfOneView)
    return (*recorder)(op, keys, stack);
  std::optional<ops::ConstantIndices> constants;
  if (self.size(dim) <= kMostConstantPlaces) constants.emplace();
  std::vector<at::Tensor> parts;
  for (int64_t i = 0; i < self.size(dim); ++i) parts.push_back(self.select(dim, i));
  torch::jit::drop(*stack, 2);
  torch::jit::push(*stack, std::move(parts));
}

// Replaces the arguments (self, sizes, dim) on the stack by a view for each part.
void PushParts(const at::Tensor& self, std::span<const int64_t> sizes, int64_t dim, Stack* stack) {
  const ops::ConstantIndices constants;
  std::vector<at::Tensor> parts;
  int64_t start = 0;
  for (const int64_t size : sizes) {
    parts.push_back(self.slice(dim, start, start + size));
    start += size;
  }
  torch::jit::drop(*stack, 3);
  torch::jit::push(*stack, std::move(parts));
}

// split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]
void Split(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  static auto* recorder = new record::RecordKernel;
  const auto arguments = torch::jit::last(*stack, 3);
  const at::Tensor self = arguments[0].toTensor();
  const int64_t size = arguments[1].toInt(), dim = arguments[2].toInt();
  const bool is_valid = HasDim(self, dim) && size > 0;
  if (!is_valid || self.size(dim) / size < kMostResultsOfOneView)
    return (*recorder)(op, keys, stack);
  const int64_t rest = self.size(dim) % size;
  std::vector<int64_t> sizes(self.size(dim) / size, size);
  if (rest > 0) sizes.push_back(rest);
  PushParts(self, sizes, dim, stack);
}

// split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]
void SplitWithSizes(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  static auto* recorder = new record::RecordKernel;
  const auto arguments = torch::jit::last(*stack, 3);
  const at::Tensor self = arguments[0].toTensor();
  const std::vector<int64_t> sizes = arguments[1].toIntVector();
  const int64_t dim = arguments[2].toInt();
  const bool is_valid = HasDim(self, dim) &&
                        std::ranges::all_of(sizes, [](int64_t size) { return size >= 0; }) &&
                        std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) == self.size(dim);
  if (!is_valid || std::ssize(sizes) <= kMostResultsOfOneView) return (*recorder)(op, keys, stack);
  PushParts(self, sizes, dim, stack);
}

// _unsafe_view(Tensor self, SymInt[] size) -> Tensor
//
// A view of which autograd knows nothing. Some of torch's ops (kron with `out`) write through it.
void UnsafeView(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const std::vector<int64_t> size = torch::jit::pop(*stack).toIntVector();
  const at::Tensor self = torch::jit::pop(*stack).toTensor();
  torch::jit::push(*stack, self.reshape(size));
}

// unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]
//
// Views of which autograd knows nothing, so that it allows each to be written to.
void UnsafeSplit(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const int64_t dim = torch::jit::pop(*stack).toInt(), size = torch::jit::pop(*stack).toInt();
  torch::jit::push(*stack, torch::jit::pop(*stack).toTensor().split(size, dim));
}

// unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]
void UnsafeSplitWithSizes(const OperatorHandle&, DispatchKeySet, Stack* stack) {
  const int64_t dim = torch::jit::pop(*stack).toInt();
  const std::vector<int64_t> sizes = torch::jit::pop(*stack).toIntVector();
  torch::jit::push(*stack, torch::jit::pop(*stack).toTensor().split_with_sizes(sizes, dim));
}

constexpr NamedKernel kKernels[] = {
    {"_unsafe_view", Boxed<UnsafeView>},
    {"alias", Boxed<Share>},
    {"detach", Boxed<Share>},
    {"lift_fresh", Boxed<Share>},
    {"split.Tensor", Boxed<Split>},
    {"split_with_sizes", Boxed<SplitWithSizes>},
    {"unbind.int", Boxed<Unbind>},
    {"unsafe_split.Tensor", Boxed<UnsafeSplit>},
    {"unsafe_split_with_sizes", Boxed<UnsafeSplitWithSizes>},
};

}  // namespace

std::span<const NamedKernel> ViewKernels() { return kKernels; }

}  // namespace torch_xla_lite::kernels_of_torch
