#include "torch_xla_lite/csrc/tensor/host_view.h"

#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <utility>

namespace torch_xla_lite::tensor {

at::TensorBase HostView(c10::ScalarType dtype, c10::ArrayRef<int64_t> dimensions, void* data) {
  size_t bytes = c10::elementSize(dtype);
  for (int64_t dimension : dimensions) bytes *= static_cast<size_t>(dimension);
  // As at::from_blob without options, which took half of the time of calling a small op.
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes,
      c10::DataPtr(data, c10::Device(c10::DeviceType::CPU)), /*allocator=*/nullptr,
      /*resizable=*/false);
  at::TensorBase view = at::detail::make_tensor_base<c10::TensorImpl>(
      c10::Storage(std::move(storage)), c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(dtype));
  // A new tensor has one dimension of size 0.
  if (dimensions.size() != 1 || dimensions[0] != 0) {
    view.unsafeGetTensorImpl()->set_sizes_contiguous(dimensions);
  }
  return view;
}

}  // namespace torch_xla_lite::tensor
