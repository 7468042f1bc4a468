#include "torch_xla_lite/csrc/interpreter/arena.h"

#include <c10/core/alignment.h>

#include <algorithm>
#include <iterator>

namespace torch_xla_lite::interpreter {
namespace {

size_t Rounded(size_t bytes) {
  constexpr size_t kAlignment = c10::gAlignment;
  return std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

}  // namespace

size_t Arena::Take(size_t bytes) {
  bytes = Rounded(bytes);
  const auto found =
      std::ranges::find_if(free_, [&](const auto& place) { return place.second >= bytes; });
  if (found != free_.end()) {
    const auto [offset, length] = *found;
    free_.erase(found);
    if (length > bytes) free_.emplace(offset + bytes, length - bytes);
    return offset;
  }
  // What is free at the end becomes longer.
  size_t offset = size_;
  if (!free_.empty() && free_.rbegin()->first + free_.rbegin()->second == size_) {
    offset = free_.rbegin()->first;
    free_.erase(std::prev(free_.end()));
  }
  size_ = offset + bytes;
  return offset;
}

void Arena::Return(size_t offset, size_t bytes) {
  bytes = Rounded(bytes);
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && offset + bytes == next->first) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      previous->second += bytes;
      return;
    }
  }
  free_.emplace(offset, bytes);
}

}  // namespace torch_xla_lite::interpreter
