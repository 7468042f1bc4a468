// Storages that torch makes by their size: torch.UntypedStorage(16, device='jax'), storage.clone().
//
// The kind of storage registers itself with torch when the library is loaded. There is no header
// because the rest of the library does not use it.

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

#include "torch_xla_lite/csrc/record/transfer.h"

namespace torch_xla_lite::kernels_of_torch {
namespace {

c10::intrusive_ptr<c10::StorageImpl> Create(c10::StorageImpl::use_byte_size_t,
                                            c10::SymInt num_bytes, c10::DataPtr, c10::Allocator*,
                                            bool) {
  const auto host = at::detail::empty_cpu({num_bytes.expect_int()}, at::kByte);
  const at::Tensor tensor = record::Upload(at::Tensor(host));
  return c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(
      tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
}

const bool kRegistered = [] {
  c10::SetStorageImplCreate(c10::DeviceType::PrivateUse1, &Create);
  return true;
}();

}  // namespace
}  // namespace torch_xla_lite::kernels_of_torch
