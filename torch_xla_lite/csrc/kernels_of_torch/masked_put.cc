#include "torch_xla_lite/csrc/kernels_of_torch/masked_put.h"

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

namespace torch_xla_lite::kernels_of_torch {
namespace {

using torch::jit::Stack;

bool IsMask(const at::Tensor& index) {
  return index.scalar_type() == at::kBool || index.scalar_type() == at::kByte;
}

// The position of the mask among the indices, if it is the only one and on jax.
std::optional<int64_t> FindMask(const c10::List<std::optional<at::Tensor>>& indices) {
  std::optional<int64_t> found;
  for (size_t i = 0; i < indices.size(); ++i) {
    const std::optional<at::Tensor> index = indices.get(i);
    if (!index || !index->defined()) continue;
    if (found || !IsMask(*index) || !index->device().is_privateuseone()) return std::nullopt;
    found = static_cast<int64_t>(i);
  }
  return found;
}

void Require(const at::Tensor& condition, std::string_view message) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("aten::_assert_async", "msg")
                             .typed<void(const at::Tensor&, std::string_view)>();
  op.call(condition, message);
}

// Whether the mask has the sizes of the dimensions of `self` from `dim` on. It is not broadcast.
bool Fits(const at::Tensor& mask, const at::Tensor& self, int64_t dim) {
  return self.dim() >= dim + mask.dim() && self.sizes().slice(dim, mask.dim()) == mask.sizes();
}

// Writes `values` to the elements of `self` that the mask selects, in dimension `dim` and on.
void Put(const at::Tensor& self, int64_t dim, at::Tensor mask, const at::Tensor& values,
         bool accumulate) {
  mask = mask.to(at::kBool);
  std::vector<int64_t> dims(mask.dim()), front(mask.dim());
  std::iota(dims.begin(), dims.end(), dim);
  std::iota(front.begin(), front.end(), 0);
  // The dimensions of the mask come first, then the others: masked_scatter uses this order.
  const at::Tensor target = self.movedim(dims, front);
  // Of one element that `self` has for each row of values.
  const at::IntArrayRef others = target.sizes().slice(mask.dim());
  std::vector<int64_t> shape(others.begin(), others.end());
  const int64_t behind = static_cast<int64_t>(shape.size()) - dim;
  const int64_t rows = values.dim() > behind ? values.size(values.dim() - behind - 1) : 1;
  shape.insert(shape.begin() + dim, rows);
  const at::Tensor source = values.to(self.scalar_type()).expand(shape).movedim(dim, 0);
  at::Tensor selected = mask;
  while (selected.dim() < target.dim()) selected = selected.unsqueeze(-1);
  at::Tensor result;
  if (rows == 1) {
    const at::Tensor row = source.squeeze(0);
    result = (accumulate ? target.add(row) : row.expand(target.sizes())).where(selected, target);
  } else {
    Require(mask.sum().eq(rows),
            "shape mismatch: another number of values than of True elements of the mask");
    result = accumulate
                 ? target.add(target.new_zeros(target.sizes()).masked_scatter(selected, source))
                 : target.masked_scatter(selected, source);
  }
  target.copy_(result);
  // A view learns of a gradient that was written through another one when it is asked for it.
  self.grad_fn();
}

// The mask of `x[mask] = number`, where torch converts the number to another dtype as masked_fill
// does. All other calls need values of the dtype of `self`.
std::optional<at::Tensor> MaskOfNumber(const at::Tensor& self, const c10::IValue& index_list,
                                       const at::Tensor& values, bool accumulate) {
  const bool is_number = values.device().is_cpu() && values.dim() == 0;
  if (!is_number || accumulate || values.scalar_type() == self.scalar_type()) return std::nullopt;
  const auto indices = index_list.toOptionalTensorList();
  const std::optional<int64_t> dim = FindMask(indices);
  if (!dim) return std::nullopt;
  at::Tensor mask = indices.get(*dim)->to(at::kBool);
  if (!Fits(mask, self, *dim)) return std::nullopt;
  while (mask.dim() < self.dim() - *dim) mask = mask.unsqueeze(-1);
  return mask;
}

void Kernel(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 4);
  const at::Tensor self = arguments[0].toTensor();
  const at::Tensor values = arguments[2].toTensor();
  const bool is_in_place = op.operator_name().name.ends_with('_');
  const auto mask = MaskOfNumber(self, arguments[1], values, arguments[3].toBool());
  if (mask) {
    torch::jit::drop(*stack, 4);
    stack->emplace_back(is_in_place ? self.masked_fill_(*mask, values)
                                    : self.masked_fill(*mask, values));
    return;
  }
  const bool needs_grad = at::GradMode::is_enabled() && values.requires_grad();
  const auto indices =
      needs_grad ? arguments[1].toOptionalTensorList() : c10::List<std::optional<at::Tensor>>();
  const std::optional<int64_t> dim = FindMask(indices);
  if (!dim || !Fits(*indices.get(*dim), self, *dim)) {
    // torch's own kernel, which serves all devices.
    return op.getComputedKernelForDispatchKey(c10::DispatchKey::AutogradCPU)
        .callBoxed(op, keys, stack);
  }
  const at::Tensor target = is_in_place ? self : self.clone();
  Put(target, *dim, *indices.get(*dim), values, arguments[3].toBool());
  torch::jit::drop(*stack, 4);
  stack->emplace_back(target);
}

}  // namespace

torch::CppFunction MaskedPut() { return torch::CppFunction::makeFromBoxedFunction<&Kernel>(); }

}  // namespace torch_xla_lite::kernels_of_torch
