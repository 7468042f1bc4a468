#include "torch_xla_lite/csrc/interpreter/memory.h"

#include <c10/core/ScalarTypeToTypeMeta.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <utility>

namespace torch_xla_lite::interpreter {
namespace {

c10::DataPtr PointerTo(void* data) { return {data, c10::Device(c10::DeviceType::CPU)}; }

}  // namespace

Memory::Memory(size_t bytes, uintptr_t* next)
    : bytes_(bytes),
      begin_(*next),
      storage_(c10::make_intrusive<c10::StorageImpl>(
          c10::StorageImpl::use_byte_size_t(), bytes,
          PointerTo(reinterpret_cast<void*>(begin_)),  // NOLINT
          /*allocator=*/nullptr, /*resizable=*/false)) {
  constexpr uintptr_t kAlignment = 64;
  *next += (bytes / kAlignment + 1) * kAlignment;
}

at::Tensor Memory::Tensor(const Trace::Value& value) const {
  at::Tensor tensor(at::detail::make_tensor_base<c10::TensorImpl>(
      c10::Storage(storage_), c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(value.dtype)));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(value.sizes, value.strides, value.offset);
  return tensor;
}

void Memory::Follow(KeptKernel* kernel, std::span<const void* const> places) {
  for (size_t i = 0; i < places.size(); ++i) {
    const auto place = reinterpret_cast<uintptr_t>(places[i]);
    if (place < begin_ || place - begin_ > bytes_) continue;
    operands_.push_back({kernel, i, place - begin_});
  }
}

void Memory::Place(void* data) {
  if (data == storage_.data()) return;
  storage_.unsafeGetStorageImpl()->set_data_ptr_noswap(PointerTo(data));
  for (const Operand& operand : operands_) {
    operand.kernel->Move(operand.operand, static_cast<char*>(data) + operand.offset);
  }
}

}  // namespace torch_xla_lite::interpreter
