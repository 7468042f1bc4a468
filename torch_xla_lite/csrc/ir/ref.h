// Ref<T>: an owning pointer to an object with an intrusive reference count.
//
// Graph nodes are created and dropped by the million; std::shared_ptr would double the size of
// pointers, and its control block cannot share an allocation with a node and its variable-length
// operands. T derives from RefCounted and may define `static void Destroy(T*)`, which then replaces
// `delete`.
//
//   Ref<Buffer> a = Ref<Buffer>::Take(new HostBuffer(...));   // takes over the initial reference
//   Ref<Buffer> b = a;                                        // 2 references
//
// Counts are atomic: references may be dropped on any thread.

#ifndef TORCH_XLA_LITE_CSRC_IR_REF_H_
#define TORCH_XLA_LITE_CSRC_IR_REF_H_

#include <atomic>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace torch_xla_lite::ir {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void Retain() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  // True if the caller dropped the last reference and must destroy the object.
  bool Release() const { return refs_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  uint32_t refs() const { return refs_.load(std::memory_order_acquire); }

 private:
  mutable std::atomic<uint32_t> refs_{1};
};

template <typename T>
class Ref {
 public:
  Ref() = default;
  static Ref Take(T* pointer) {
    Ref ref;
    ref.pointer_ = pointer;
    return ref;
  }
  static Ref Share(T* pointer) {
    if (pointer != nullptr) pointer->Retain();
    return Take(pointer);
  }
  Ref(const Ref& other) : pointer_(other.pointer_) {
    if (pointer_ != nullptr) pointer_->Retain();
  }
  Ref(Ref&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
  // Of a derived class, or to what was not const.
  template <typename U>
  requires std::is_convertible_v<U*, T*> Ref(Ref<U> other)
  noexcept : pointer_(other.Release()) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(pointer_, other.pointer_);
    return *this;
  }
  ~Ref() {
    if (pointer_ != nullptr && pointer_->Release()) Destroy(pointer_);
  }

  // Leaves the reference to the caller.
  T* Release() { return std::exchange(pointer_, nullptr); }
  T* get() const { return pointer_; }
  T& operator*() const { return *pointer_; }
  T* operator->() const { return pointer_; }
  explicit operator bool() const { return pointer_ != nullptr; }
  bool operator==(const Ref& other) const { return pointer_ == other.pointer_; }

 private:
  static void Destroy(T* pointer) {
    if constexpr (requires { T::Destroy(pointer); }) {
      T::Destroy(pointer);
    } else {
      delete pointer;
    }
  }

  T* pointer_ = nullptr;
};

template <typename T, typename... Arguments>
Ref<T> MakeRef(Arguments&&... arguments) {
  return Ref<T>::Take(new T(std::forward<Arguments>(arguments)...));
}

}  // namespace torch_xla_lite::ir

#endif  // TORCH_XLA_LITE_CSRC_IR_REF_H_
