#include "torch_xla_lite/csrc/record/layout.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "torch_xla_lite/csrc/runtime/runtime.h"
#include "torch_xla_lite/csrc/tensor/tensor_impl.h"

namespace torch_xla_lite::record {

using tensor::XTensorImpl;

at::Tensor CopyOf(const at::Tensor& tensor) {
  // Values are immutable, so a copy is a new tensor with the same value.
  const runtime::RecordScope scope;
  return at::Tensor(tensor::MakeTensor(XTensorImpl::From(tensor)->Read()));
}

std::vector<int64_t> StridesFor(const at::Tensor& tensor, at::MemoryFormat format) {
  TORCH_CHECK(format != at::MemoryFormat::ChannelsLast || tensor.dim() == 4,
              "required rank 4 tensor to use channels_last format");
  TORCH_CHECK(format != at::MemoryFormat::ChannelsLast3d || tensor.dim() == 5,
              "required rank 5 tensor to use channels_last_3d format");
  switch (format) {
    case at::MemoryFormat::ChannelsLast:
      return c10::get_channels_last_strides_2d(tensor.sizes());
    case at::MemoryFormat::ChannelsLast3d:
      return c10::get_channels_last_strides_3d(tensor.sizes());
    case at::MemoryFormat::Preserve:
      if (tensor.unsafeGetTensorImpl()->is_non_overlapping_and_dense()) {
        return tensor.strides().vec();
      }
      [[fallthrough]];
    default: {
      std::vector<int64_t> strides(tensor.dim());
      int64_t stride = 1;
      for (int64_t i = tensor.dim() - 1; i >= 0; --i) {
        strides[i] = stride;
        stride *= std::max<int64_t>(tensor.size(i), 1);
      }
      return strides;
    }
  }
}

at::Tensor WithStrides(const at::Tensor& tensor, at::IntArrayRef strides) {
  if (tensor.strides() == strides || tensor.numel() == 0) return tensor;
  std::vector<int64_t> order(tensor.dim()), inverse(tensor.dim());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return strides[a] > strides[b]; });
  for (size_t i = 0; i < order.size(); ++i) inverse[order[i]] = static_cast<int64_t>(i);
  const at::Tensor view = CopyOf(tensor.permute(order)).permute(inverse);
  return view.strides() == strides ? view : tensor;
}

void ApplyLayout(c10::ArrayRef<c10::IValue> arguments, int layout, c10::IValue* result) {
  const c10::IValue& asked = arguments[layout];
  if (asked.isIntList()) {
    *result = WithStrides(result->toTensor(), asked.toDimVector());
    return;
  }
  const auto format = asked.toOptional<at::MemoryFormat>().value_or(at::MemoryFormat::Preserve);
  if (result->isTensor()) {
    const at::Tensor tensor = result->toTensor();
    // Factories have no tensor whose strides could be preserved.
    const at::Tensor model = arguments[0].isTensor() ? arguments[0].toTensor() : tensor;
    *result = WithStrides(tensor, StridesFor(model, format));
    return;
  }
  const std::vector<at::Tensor> models = arguments[0].toTensorVector();
  std::vector<at::Tensor> tensors = result->toTensorVector();
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i] = WithStrides(tensors[i], StridesFor(models[i], format));
  }
  *result = std::move(tensors);
}

}  // namespace torch_xla_lite::record
