#include "torch_xla_lite/csrc/record/overlap.h"

#include <ATen/core/Tensor.h>
#include <c10/util/flat_hash_map.h>

#include <algorithm>

#include "torch_xla_lite/csrc/ops/call.h"
#include "torch_xla_lite/csrc/ops/map_tensors.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"
#include "torch_xla_lite/csrc/tensor/view_step.h"

namespace torch_xla_lite::record {
namespace {

using tensor::XTensorImpl;

// Whether the op writes the same value to all elements, or nothing, so that expanded tensors are
// allowed.
bool MayWriteToExpanded(const ops::OpInfo& info) {
  // Changing the shape is not a write.
  return info.kind == ops::OpInfo::Kind::kInplaceView || info.name == "aten::fill.Scalar" ||
         info.name == "aten::zero" || info.name == "aten::_foreach_zero";
}

// Other devices copy such views before they compute.
bool IsConjugated(const XTensorImpl& tensor) {
  const runtime::RecordScope scope;
  return tensor::IsConjugated(tensor.step().get());
}

// What two tensors of one storage share. As in torch, only for tensors without gaps: it would be
// expensive to find out for others.
ops::OpInfo::Sharing SharingOf(const XTensorImpl& a, const XTensorImpl& b) {
  using Sharing = ops::OpInfo::Sharing;
  if (a.numel() == 0 || b.numel() == 0) return Sharing::kNothing;
  if (!a.is_non_overlapping_and_dense() || !b.is_non_overlapping_and_dense())
    return Sharing::kNothing;
  const auto begin = [](const XTensorImpl& x) {
    return x.storage_offset() * static_cast<int64_t>(x.itemsize());
  };
  const auto end = [&](const XTensorImpl& x) {
    return begin(x) + x.numel() * static_cast<int64_t>(x.itemsize());
  };
  if (begin(a) == begin(b) && end(a) == end(b) && a.strides() == b.strides()) return Sharing::kSame;
  if (begin(a) >= end(b) || begin(b) >= end(a)) return Sharing::kNothing;
  return IsConjugated(a) || IsConjugated(b) ? Sharing::kNothing : Sharing::kAny;
}

// Checks what the arguments share with a written tensor, which is an argument or an item of one.
void CheckOperands(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
                   const XTensorImpl& written, size_t item) {
  for (size_t k = 0; k < arguments.size(); ++k) {
    const ops::OpInfo::Sharing sharing = info.arguments[k].sharing;
    if (sharing == ops::OpInfo::Sharing::kAny) continue;
    const c10::IValue* shared = &arguments[k];
    // Of a list, the item at the same place: a call may have thousands.
    if (info.writes_lists && shared->isList()) {
      const c10::ArrayRef<c10::IValue> items = shared->toListRef();
      if (item >= items.size()) continue;
      shared = &items[item];
    }
    ops::ForEachTensor(*shared,
                       [&](const at::Tensor& operand) { CheckSharing(written, operand, sharing); });
  }
}

}  // namespace

void CheckWritable(const at::Tensor& tensor, const std::string& op, bool allow_expanded) {
  const XTensorImpl* impl = XTensorImpl::From(tensor);
  TORCH_CHECK(impl != nullptr, "expected all tensors on one device, found jax:0 and ",
              tensor.device(), " (in ", op, ").\nMove the written tensor first:  tensor.to('jax')");
  if (allow_expanded || impl->is_row_major() || impl->numel() == 0) return;
  const auto sizes = impl->sizes();
  const auto strides = impl->strides();
  for (size_t i = 0; i < sizes.size(); ++i) {
    TORCH_CHECK(sizes[i] <= 1 || strides[i] != 0,
                "unsupported operation: more than one element of the written-to tensor refers to a "
                "single memory location (in ",
                op, "). Please clone() the tensor before performing the operation.");
  }
}

void CheckSharing(const XTensorImpl& written, const at::Tensor& operand,
                  ops::OpInfo::Sharing allowed) {
  const XTensorImpl* impl = operand.defined() ? XTensorImpl::From(operand) : nullptr;
  // The first comparisons decide nearly all calls.
  if (impl == nullptr || &impl->alias() != &written.alias()) return;
  if (impl == &written && allowed != ops::OpInfo::Sharing::kNothing) return;
  TORCH_CHECK(SharingOf(written, *impl) <= allowed,
              "unsupported operation: some elements of the input tensor and the written-to tensor "
              "refer to a single memory location. Please clone() the tensor before performing the "
              "operation.");
}

void CheckWrites(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  for (const int i : info.mutated) {
    size_t item = 0;
    ops::ForEachTensor(arguments[i], [&](const at::Tensor& tensor) {
      if (tensor.defined()) {
        CheckWritable(tensor, info.name, MayWriteToExpanded(info));
        if (info.limits_sharing) CheckOperands(info, arguments, *XTensorImpl::From(tensor), item);
      }
      ++item;
    });
  }
}

bool ListsShareMemory(const ops::OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  if (!info.writes_lists) return false;
  const size_t size = arguments[info.mutated[0]].toListRef().size();
  // Lists of different lengths are refused where the shapes are inferred.
  const auto corresponds = [&](const c10::IValue& value) {
    return !value.isList() || value.toList().empty() || value.toList().size() == size;
  };
  if (size < 2 || !std::ranges::all_of(arguments, corresponds)) return false;
  ska::flat_hash_map<const tensor::Alias*, size_t> written;
  written.reserve(size);
  bool shares = false;
  for (const int i : info.mutated) {
    if (!arguments[i].isList()) continue;
    size_t item = 0;
    ops::ForEachTensor(arguments[i], [&](const at::Tensor& tensor) {
      const auto [entry, is_new] = written.emplace(&XTensorImpl::From(tensor)->alias(), item);
      shares |= !is_new && entry->second != item;
      ++item;
    });
  }
  for (size_t k = 0; k < arguments.size() && !shares; ++k) {
    const bool is_list = arguments[k].isList();
    size_t item = 0;
    ops::ForEachTensor(arguments[k], [&](const at::Tensor& tensor) {
      const XTensorImpl* impl = tensor.defined() ? XTensorImpl::From(tensor) : nullptr;
      const auto entry = impl == nullptr ? written.end() : written.find(&impl->alias());
      shares |= entry != written.end() && !(is_list && entry->second == item);
      ++item;
    });
  }
  return shares;
}

}  // namespace torch_xla_lite::record
