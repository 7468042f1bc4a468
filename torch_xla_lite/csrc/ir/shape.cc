#include "torch_xla_lite/csrc/ir/shape.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "torch_xla_lite/csrc/ir/hash.h"

namespace torch_xla_lite::ir {
namespace {

uint64_t HashOf(DType dtype, std::span<const int64_t> dims) {
  const auto* words = reinterpret_cast<const uint64_t*>(dims.data());
  return HashWords({words, dims.size()}, static_cast<uint64_t>(dtype));
}

}  // namespace

const Shape* Shape::Of(DType dtype, std::span<const int64_t> dims) {
  static auto* mutex = new std::mutex;
  static auto* shapes = new std::unordered_multimap<uint64_t, const Shape*>;
  const uint64_t hash = HashOf(dtype, dims);
  const std::lock_guard lock(*mutex);
  const auto [begin, end] = shapes->equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const Shape* shape = it->second;
    if (shape->dtype_ == dtype && std::ranges::equal(shape->dims_, dims)) return shape;
  }
  return shapes->emplace(hash, new Shape(dtype, dims))->second;
}

int64_t Shape::NumElements() const {
  int64_t count = 1;
  for (int64_t dim : dims_) count *= dim;
  return count;
}

std::string Shape::ToString() const {
  std::string text = "dtype" + std::to_string(static_cast<int>(dtype_)) + "[";
  for (size_t i = 0; i < dims_.size(); ++i) {
    text += (i == 0 ? "" : ",") + std::to_string(dims_[i]);
  }
  return text + "]";
}

}  // namespace torch_xla_lite::ir
