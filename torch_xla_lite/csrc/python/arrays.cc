#include "torch_xla_lite/csrc/python/arrays.h"

#include <ATen/EmptyTensor.h>
#include <pybind11/numpy.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "torch_xla_lite/csrc/device/block_allocator.h"
#include "torch_xla_lite/csrc/python/buffer.h"
#include "torch_xla_lite/csrc/python/dropped.h"
#include "torch_xla_lite/csrc/python/untraced.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"

namespace py = pybind11;

namespace torch_xla_lite::python {

at::Tensor Empty(const ir::Shape* shape) {
  const device::BlockScope blocks;
  return at::Tensor(at::detail::empty_cpu(shape->dims(), tensor::ScalarTypeOf(shape)));
}

at::Tensor CopyOf(const void* data, const ir::Shape* shape) {
  at::Tensor copy = Empty(shape);
  std::memcpy(copy.mutable_data_ptr(), data, copy.nbytes());
  return copy;
}

py::object PackScalars(std::span<const uint64_t> scalars) {
  py::array_t<int32_t> packed({static_cast<py::ssize_t>(scalars.size()), py::ssize_t{2}});
  std::memcpy(packed.mutable_data(), scalars.data(), scalars.size_bytes());
  return packed;
}

bool IsJaxImported() {
  static bool is_imported = false;  // It is never unloaded.
  static PyObject* const name = PyUnicode_InternFromString("jax");
  // Each upload asks.
  if (!is_imported) is_imported = PyDict_Contains(PyImport_GetModuleDict(), name) == 1;
  return is_imported;
}

// Below Python's lock, which the import releases meanwhile. So nothing is initialised here: threads
// that wait for an initializer would hold that lock.
void KeepClient() {
  static const py::object* devices = nullptr;
  if (devices != nullptr) return;
  const auto late = py::module_::import("torch_xla_lite.startup.late_jax");
  devices = new py::object(late.attr("jax").attr("devices")());
}

Arrays::Arrays(const py::object& compiler)
    : has_host_memory_(compiler.attr("has_host_memory")),
      upload_(compiler.attr("upload")),
      copy_(compiler.attr("copy")),
      place_(compiler.attr("place")),
      dtypes_(compiler.attr("dtypes")) {}

int Arrays::TorchDtype(py::handle dtype) const {
  for (const auto& [number, candidate] : dtypes_) {
    if (candidate.equal(dtype)) return number.cast<int>();
  }
  throw py::type_error("torch has no element type " + py::str(dtype).cast<std::string>() +
                       ".\nConvert the array first:  array.astype('float32')");
}

bool Arrays::HasHostMemory() const {
  const bool has_host_memory = has_host_memory_().cast<bool>();
  if (IsJaxImported()) KeepClient();
  return has_host_memory;
}

py::handle Arrays::Of(ir::Buffer* buffer) const {
  auto& ours = static_cast<PyBuffer&>(*buffer);
  if (!ours.array()) ours.SetArray(Uploaded(ours.tensor()));
  return ours.array();
}

py::object Arrays::Uploaded(const at::Tensor& tensor) const {
  KeepClient();
  const py::capsule owner(new at::Tensor(tensor),
                          [](void* owned) { delete static_cast<at::Tensor*>(owned); });
  const py::object dtype = dtypes_[py::int_(static_cast<int>(tensor.scalar_type()))];
  return upload_(py::array(py::dtype(dtype), tensor.sizes(), tensor.const_data_ptr(), owner));
}

ir::Ref<ir::Buffer> Arrays::BufferOf(at::Tensor tensor) const {
  // numpy, which passes data to jax, has at most this many dimensions, and would report it only
  // when a graph needs the array.
  constexpr int64_t kMostDims = 64;
  if (tensor.dim() > kMostDims) {
    throw std::runtime_error("a tensor on jax has at most 64 dimensions, and this one has " +
                             std::to_string(tensor.dim()) + ".");
  }
  const Untraced python;
  ReleaseDropped();
  auto buffer = ir::Ref<ir::Buffer>::Take(new PyBuffer(std::move(tensor)));
  // A device with memory of its own gets the data at once.
  if (!HasHostMemory()) Of(buffer.get());
  return buffer;
}

ir::Ref<ir::Buffer> Arrays::Placed(const ir::Shape* shape, ir::Ref<ir::Buffer> buffer,
                                   ir::Placement placement) const {
  const Untraced python;
  return ir::Ref<ir::Buffer>::Take(
      new PyBuffer(place_(Of(buffer.get()), placement), shape, placement));
}

void Arrays::Move(ir::Buffer* buffer, ir::Placement placement) const {
  static_cast<PyBuffer&>(*buffer).Move(place_(Of(buffer), placement), placement);
}

}  // namespace torch_xla_lite::python
