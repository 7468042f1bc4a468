#include "torch_xla_lite/csrc/python/buffer.h"

#include <new>
#include <stdexcept>
#include <utility>

#include "torch_xla_lite/csrc/device/memory.h"
#include "torch_xla_lite/csrc/python/dropped.h"
#include "torch_xla_lite/csrc/python/executable.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"

namespace py = pybind11;

namespace torch_xla_lite::python {
PyBuffer::PyBuffer(py::object array, const ir::Shape* shape, ir::Placement placement,
                   std::optional<size_t> producer)
    : array_(array.release().ptr()),
      num_bytes_(tensor::ByteSize(shape)),
      producer_(producer),
      placement_(placement) {
  device::NoteAllocated(num_bytes_);
}

PyBuffer::PyBuffer(at::Tensor tensor)
    : tensor_(std::move(tensor)), num_bytes_(static_cast<int64_t>(tensor_.nbytes())) {
  device::NoteAllocated(num_bytes_);
}

PyBuffer::~PyBuffer() {
  device::NoteFreed(num_bytes_);
  if (array_ != nullptr) Drop(array_);
}

void PyBuffer::SetArray(py::object array) {
  // Making an array releases Python's lock, so another thread may have made one.
  if (array_ == nullptr) array_ = array.release().ptr();
}

void PyBuffer::Move(py::object array, ir::Placement placement) {
  Drop(array_.exchange(array.release().ptr()));
  placement_ = placement;
}

py::array HostArray(py::handle array) {
  // The constructor raises the error of jax, which `ensure` would drop.
  const auto converted = [&] {
    try {
      return py::array(py::reinterpret_borrow<py::object>(array));
    } catch (py::error_already_set&) {
      const bool has_all = array.attr("is_fully_addressable").cast<bool>() ||
                           array.attr("is_fully_replicated").cast<bool>();
      if (has_all) throw;
      throw std::runtime_error(
          "a tensor is divided among processes, and this one has parts of it only.\n"
          "Gather it, in all processes:  torch_xla_lite.full(x)");
    }
  }();
  auto host = py::array::ensure(converted, py::array::c_style);
  if (!host) throw std::bad_alloc();
  return host;
}

HostData DataOf(const PyBuffer& buffer) {
  if (!buffer.array()) return {{}, buffer.tensor().const_data_ptr(), buffer.tensor().nbytes()};
  const Stopwatch stopwatch;
  py::array owner = HostArray(buffer.array());
  if (buffer.producer()) NoteSeconds(*buffer.producer(), stopwatch.seconds());
  const void* const start = owner.data();
  const auto num_bytes = static_cast<size_t>(owner.nbytes());
  return {std::move(owner), start, num_bytes};
}

}  // namespace torch_xla_lite::python
