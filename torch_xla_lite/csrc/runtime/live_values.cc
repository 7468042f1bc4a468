#include "torch_xla_lite/csrc/runtime/live_values.h"

#include <utility>

namespace torch_xla_lite::runtime {
namespace {

LiveValue* first = nullptr;
LiveValue* last = nullptr;

}  // namespace

ir::Value LiveValue::Set(ir::Value value) {
  Unlink();
  std::swap(value_, value);
  if (!value_) return value;
  if (value_.buffer() == nullptr) {
    LinkLast();
  } else {
    last_leaf_ = value_.node.get();
  }
  return value;
}

void LiveValue::LinkLast() {
  previous_ = last;
  (last == nullptr ? first : last->next_) = this;
  last = this;
  is_linked_ = true;
}

void LiveValue::Unlink() {
  // Checks its own member and not the list: a value that is not linked may be destroyed without the
  // lock.
  if (!is_linked_) return;
  (previous_ == nullptr ? first : previous_->next_) = next_;
  (next_ == nullptr ? last : next_->previous_) = previous_;
  previous_ = next_ = nullptr;
  is_linked_ = false;
}

std::vector<LiveValue*> PendingValues() {
  std::vector<LiveValue*> pending;
  for (LiveValue* place = first; place != nullptr; place = place->next_) pending.push_back(place);
  return pending;
}

}  // namespace torch_xla_lite::runtime
