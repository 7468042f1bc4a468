#include "torch_xla_lite/csrc/interpreter/trace.h"

#include <ATen/EmptyTensor.h>

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
  BeginCall({}, {}, /*overwrites=*/false);
  EndCall({&leaf, 1});
}

void Trace::BeginCall(std::span<const ir::Position> positions, std::span<const at::Tensor> operands,
                      bool overwrites) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].defined() || !operands[i].has_storage()) continue;
    const uint32_t memory = steps_[positions[i].step].results[positions[i].output].memory;
    if (memory != kUndefined) known_.push_back({operands[i].storage(), memory, starts_[memory]});
  }
  steps_.push_back({{}, overwrites});
}

void Trace::EndCall(std::span<const at::Tensor> results, bool moves) {
  for (const at::Tensor& result : results) Add(result, moves);
  known_.clear();
}

void Trace::Add(const at::Tensor& tensor, bool moves) {
  std::vector<Value>& results = steps_.back().results;
  results.emplace_back();
  if (!tensor.defined()) return;
  is_plain_ = is_plain_ && IsPlain(tensor);
  if (!is_plain_) return;
  const auto size = static_cast<int64_t>(tensor.element_size());
  auto known = std::ranges::find_if(
      known_, [&](const Known& other) { return other.storage.is_alias_of(tensor.storage()); });
  if (moves || known == known_.end()) {
    const int64_t start = moves ? tensor.storage_offset() * size : 0;
    const size_t bytes = moves ? at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(),
                                                                  tensor.element_size())
                               : tensor.storage().nbytes();
    known_.push_back({tensor.storage(), static_cast<uint32_t>(memories_.size()), start});
    known = known_.end() - 1;
    memories_.push_back(bytes);
    starts_.push_back(start);
  }
  Value& value = results.back();
  value.memory = known->memory;
  value.dtype = tensor.scalar_type();
  value.sizes = c10::DimVector(tensor.sizes());
  value.strides = c10::DimVector(tensor.strides());
  value.offset = tensor.storage_offset() - known->start / size;
}

}  // namespace torch_xla_lite::interpreter
