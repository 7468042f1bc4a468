// RecentTable: a hash table of shared objects that forgets those that are no longer used.
//
// Shapes, signatures, and how often a graph ran are kept for each shape that a program computes
// with, and a program may compute with ever more shapes. All of these tables are such a table.
//
//   RecentTable<Shape> table(8192);
//   Shape* s = table.Find(hash, [&](const Shape& shape) { return shape.dims() == dims; });
//   if (s == nullptr) s = table.Insert(hash, Ref<Shape>::Take(new Shape(dims)));
//
// What nothing but the table refers to may be dropped by the next Insert: first what was not looked
// up since it was inserted, or since the last time that objects were dropped. What something else
// refers to stays, so that equal objects are one object; only these can make the table larger than
// its limit. T derives from RefCounted; it may have a method IsReferenced, which says whether
// something else refers to it. Not thread-safe.

#ifndef TORCH_XLA_LITE_CSRC_IR_RECENT_TABLE_H_
#define TORCH_XLA_LITE_CSRC_IR_RECENT_TABLE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/ir/ref.h"

namespace torch_xla_lite::ir {

template <typename T>
class RecentTable {
 public:
  explicit RecentTable(size_t limit) : limit_(limit), drop_at_(limit), slots_(kFewest) {}

  // `is_equal(object)` is called for objects with this hash. nullptr if there is none.
  template <typename IsEqual>
  T* Find(uint64_t hash, IsEqual&& is_equal) {
    const size_t mask = slots_.size() - 1;
    for (size_t i = hash & mask; slots_[i].object; i = (i + 1) & mask) {
      Slot& slot = slots_[i];
      if (slot.hash != hash || !is_equal(std::as_const(*slot.object))) continue;
      slot.was_used = true;
      return slot.object.get();
    }
    return nullptr;
  }

  // Takes an object that no object of the table equals.
  T* Insert(uint64_t hash, Ref<T> object) {
    if (size_ >= drop_at_) Drop();
    if ((size_ + 1) * 2 > slots_.size()) Rebuild(slots_.size() * 2);
    return Add({hash, std::move(object)});
  }

  // Calls function(hash, object) for each.
  template <typename Function>
  void ForEach(Function&& function) const {
    for (const Slot& slot : slots_) {
      if (slot.object) function(slot.hash, std::as_const(*slot.object));
    }
  }

  void Clear() { *this = RecentTable(limit_); }
  size_t size() const { return size_; }

 private:
  static constexpr size_t kFewest = 64;  // Slots.

  // At most half of the slots have an object; an object is in the first free one from its hash on.
  struct Slot {
    uint64_t hash = 0;
    Ref<T> object;
    bool was_used = false;
  };

  static bool IsReferenced(const T& object) {
    if constexpr (requires { object.IsReferenced(); }) {
      return object.IsReferenced();
    } else {
      return object.refs() > 1;
    }
  }

  T* Add(Slot added) {
    const size_t mask = slots_.size() - 1;
    size_t i = added.hash & mask;
    while (slots_[i].object) i = (i + 1) & mask;
    slots_[i] = std::move(added);
    ++size_;
    return slots_[i].object.get();
  }

  void Rebuild(size_t num_slots) {
    std::vector<Slot> old(num_slots);
    old.swap(slots_);
    size_ = 0;
    for (Slot& slot : old) {
      if (slot.object) Add(std::move(slot));
    }
  }

  // Leaves at most half of the limit, besides what is referred to. It goes on where it stopped the
  // last time, so that each object is looked at as often as others; the second round drops also
  // what was used.
  void Drop() {
    for (size_t left = 2 * slots_.size(); left > 0 && size_ > limit_ / 2; --left) {
      Slot& slot = slots_[hand_++ & (slots_.size() - 1)];
      if (!slot.object || std::exchange(slot.was_used, false)) continue;
      if (IsReferenced(*slot.object)) continue;
      slot.object = {};
      --size_;
    }
    Rebuild(slots_.size());
    drop_at_ = std::max(limit_, 2 * size_);
  }

  size_t limit_;
  size_t drop_at_;
  size_t size_ = 0;
  size_t hand_ = 0;  // The slot where the next drop begins.
  std::vector<Slot> slots_;
};

}  // namespace torch_xla_lite::ir

#endif  // TORCH_XLA_LITE_CSRC_IR_RECENT_TABLE_H_
