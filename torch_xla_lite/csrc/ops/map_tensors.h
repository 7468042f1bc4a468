// Visits the tensors in an argument, including those in lists, or replaces them, its devices and
// its generators.
//
//   ForEachTensor(argument, [&](const at::Tensor& t) { count += t.defined(); });
//   IValue on_meta = MapArgument(argument, at::kMeta,
//                                [](const at::Tensor& t) { return MetaOf(t); });
//
// Undefined tensors stay undefined. Generators become None, because they belong to a
// device.

#ifndef TORCH_XLA_LITE_CSRC_OPS_MAP_TENSORS_H_
#define TORCH_XLA_LITE_CSRC_OPS_MAP_TENSORS_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

namespace torch_xla_lite::ops {

// The tensors of an argument: itself, or those of a list. None counts as an undefined tensor.
template <typename Visit>
void ForEachTensor(const c10::IValue& value, Visit&& visit) {
  if (value.isTensor()) {
    visit(value.toTensor());
  } else if (value.isNone()) {
    visit(at::Tensor());
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) {
      if (item.isTensor() || item.isNone()) ForEachTensor(item, visit);
    }
  }
}

template <typename Map>
c10::IValue MapArgument(const c10::IValue& value, c10::Device device, Map&& map) {
  if (value.isTensor()) {
    return value.toTensor().defined() ? c10::IValue(map(value.toTensor())) : value;
  }
  if (value.isDevice()) return device;
  if (value.isGenerator()) return {};
  if (!value.isList()) return value;
  const auto items = value.toListRef();
  const auto has_tensor = [](const c10::IValue& item) { return item.isTensor(); };
  if (std::none_of(items.begin(), items.end(), has_tensor)) return value;
  c10::impl::GenericList mapped(value.toList().elementType());
  mapped.reserve(items.size());
  for (const c10::IValue& item : items) mapped.push_back(MapArgument(item, device, map));
  return mapped;
}

}  // namespace torch_xla_lite::ops

#endif  // TORCH_XLA_LITE_CSRC_OPS_MAP_TENSORS_H_
