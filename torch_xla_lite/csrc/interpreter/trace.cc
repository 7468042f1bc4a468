#include "torch_xla_lite/csrc/interpreter/trace.h"

#include <algorithm>

namespace torch_xla_lite::interpreter {
namespace {

bool IsPlain(const at::Tensor& tensor) {
  return tensor.has_storage() && tensor.layout() == c10::kStrided && !tensor._is_zerotensor() &&
         !tensor.is_conj() && !tensor.is_neg();
}

}  // namespace

bool Trace::Value::Describes(const at::Tensor& tensor, bool anywhere) const {
  if (!tensor.defined()) return memory == kUndefined;
  return memory != kUndefined && IsPlain(tensor) && tensor.scalar_type() == dtype &&
         tensor.sizes() == at::IntArrayRef(sizes) && tensor.strides() == at::IntArrayRef(strides) &&
         (anywhere || tensor.storage_offset() == offset);
}

void Trace::AddLeaf(const at::Tensor& leaf) {
  BeginCall({}, {}, /*num_overwritten=*/0);
  EndCall({&leaf, 1});
  leaves_.insert(steps_.back().results[0].memory);
}

void Trace::BeginCall(std::span<const ir::Position> positions, std::span<const at::Tensor> operands,
                      size_t num_overwritten) {
  const auto memory_at = [this](ir::Position position) {
    return steps_[position.step].results[position.output].memory;
  };
  const bool overwrites_leaf = std::ranges::any_of(
      positions.first(num_overwritten),
      [&](ir::Position position) { return leaves_.contains(memory_at(position)); });
  for (size_t i = overwrites_leaf ? num_overwritten : 0; i < operands.size(); ++i) {
    if (!operands[i].defined() || !operands[i].has_storage()) continue;
    known_.emplace_back(operands[i].storage(), memory_at(positions[i]));
  }
  steps_.push_back({{}, num_overwritten > 0 && !overwrites_leaf});
}

void Trace::EndCall(std::span<const at::Tensor> results) {
  for (const at::Tensor& result : results) Add(result);
  known_.clear();
}

void Trace::Add(const at::Tensor& tensor) {
  std::vector<Value>& results = steps_.back().results;
  results.emplace_back();
  if (!tensor.defined()) return;
  is_plain_ = is_plain_ && IsPlain(tensor);
  if (!is_plain_) return;
  const auto same = std::ranges::find_if(
      known_, [&](const auto& known) { return known.first.is_alias_of(tensor.storage()); });
  Value& value = results.back();
  if (same != known_.end()) {
    value.memory = same->second;
  } else {
    value.memory = static_cast<uint32_t>(memories_.size());
    memories_.push_back(tensor.storage().nbytes());
    known_.emplace_back(tensor.storage(), value.memory);
  }
  value.dtype = tensor.scalar_type();
  value.sizes = c10::DimVector(tensor.sizes());
  value.strides = c10::DimVector(tensor.strides());
  value.offset = tensor.storage_offset();
}

}  // namespace torch_xla_lite::interpreter
