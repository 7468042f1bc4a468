#include "torch_xla_lite/csrc/ir/shape.h"

#include <algorithm>

#include "torch_xla_lite/csrc/ir/hash.h"
#include "torch_xla_lite/csrc/ir/mutex.h"
#include "torch_xla_lite/csrc/ir/recent_table.h"

namespace torch_xla_lite::ir {
namespace {

constexpr size_t kMostUnused = 8192;

uint64_t HashOf(DType dtype, std::span<const int64_t> dims) {
  const auto* words = reinterpret_cast<const uint64_t*>(dims.data());
  return HashWords({words, dims.size()}, static_cast<uint64_t>(dtype));
}

}  // namespace

Ref<const Shape> Shape::Of(DType dtype, std::span<const int64_t> dims) {
  static auto* mutex = new Mutex;
  static auto* shapes = new RecentTable<const Shape>(kMostUnused);
  const uint64_t hash = HashOf(dtype, dims);
  const MutexLock lock(mutex);
  const Shape* shape = shapes->Find(hash, [&](const Shape& other) {
    return other.dtype_ == dtype && std::ranges::equal(other.dims_, dims);
  });
  if (shape == nullptr) {
    shape = shapes->Insert(hash, Ref<const Shape>::Take(new Shape(dtype, dims)));
  }
  return Ref<const Shape>::Share(shape);
}

uint64_t Shape::hash() const { return HashOf(dtype_, dims_); }

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
