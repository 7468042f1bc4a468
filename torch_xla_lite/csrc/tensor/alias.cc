#include "torch_xla_lite/csrc/tensor/alias.h"

#include <atomic>
#include <utility>

#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"

namespace torch_xla_lite::tensor {
namespace {

// The address of a new storage. Addresses differ also where storages are compared by the ranges of
// their bytes. With bits 55 and 56 set, no process has memory at any of them, on x86-64 or on
// aarch64: code that uses one as a pointer crashes instead of reading something else.
c10::DataPtr NewAddress(int64_t num_bytes) {
  constexpr uint64_t kBase = uint64_t{3} << 55, kRange = uint64_t{1} << 55, kAlignment = 64;
  static std::atomic<uint64_t> next = kAlignment;
  const uint64_t size = (num_bytes / kAlignment + 1) * kAlignment;
  const uint64_t offset = next.fetch_add(size, std::memory_order_relaxed) % kRange;
  return {reinterpret_cast<void*>(kBase + offset), c10::Device(c10::DeviceType::PrivateUse1, 0)};
}

thread_local uint32_t stamp_of_new = 0;

}  // namespace

void Alias::StampNew(uint32_t number) { stamp_of_new = number; }

Alias::Alias(const ir::Shape* shape)
    : StorageImpl(use_byte_size_t(), ByteSize(shape), NewAddress(ByteSize(shape)),
                  /*allocator=*/nullptr, /*resizable=*/false),
      stamp_(stamp_of_new),
      shape_(ir::Ref<const ir::Shape>::Share(shape)) {}

Alias::~Alias() {
  const runtime::RecordScope scope;  // Frees the value after the lock is released.
  place_.Set({});
}

ir::Value Alias::SetValue(ir::Value value) {
  TORCH_INTERNAL_ASSERT(value.shape() == shape(), "a base of shape ", shape_->ToString(),
                        " cannot take a value of shape ", value.shape()->ToString());
  ++generation_;
  return place_.Set(std::move(value));
}

void Alias::Grow(ir::Value value, c10::intrusive_ptr<ViewStep> to_old_base) {
  shape_ = ir::Ref<const ir::Shape>::Share(value.shape());
  set_nbytes(ByteSize(shape()));
  set_data_ptr_noswap(NewAddress(ByteSize(shape())));
  ++growths_;
  to_old_bases_.push_back(std::move(to_old_base));
  SetValue(std::move(value));
}

c10::intrusive_ptr<ViewStep> Alias::StepsFromNow(const c10::intrusive_ptr<ViewStep>& steps,
                                                 uint32_t growths) const {
  auto result = steps;
  for (; growths < growths_; ++growths) {
    result = Concatenate(to_old_bases_[growths], result.get());
  }
  return result;
}

}  // namespace torch_xla_lite::tensor
