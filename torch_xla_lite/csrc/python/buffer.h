// The buffers of the runtime: arrays of jax, and tensors that become some.

#ifndef TORCH_XLA_LITE_CSRC_PYTHON_BUFFER_H_
#define TORCH_XLA_LITE_CSRC_PYTHON_BUFFER_H_

#include <ATen/core/Tensor.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "torch_xla_lite/csrc/ir/placement.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/runtime/executor.h"

namespace torch_xla_lite::python {

// A jax.Array, or a tensor of the CPU that becomes one when jax needs it: making an array takes
// 30 us, more than most kernels. It may be dropped on any thread and under any lock. The executor
// then releases Python's reference when it has Python's lock again, or the main thread does, as
// soon as it can.
class PyBuffer final : public ir::Buffer {
 public:
  // producer: the number of the executable that computes the array.
  PyBuffer(pybind11::object array, const ir::Shape* shape, ir::Placement placement,
           std::optional<size_t> producer = {});
  // Takes a dense tensor whose memory nothing else refers to.
  explicit PyBuffer(at::Tensor tensor);
  ~PyBuffer() override;

  // Without Python's lock the count may change while it is read. It can only be too large then: who
  // takes a reference to the array has one already, or a reference to this buffer.
  bool IsExclusive() const override {
    PyObject* const array = array_;
    return array == nullptr || Py_REFCNT(array) == 1;
  }
  ir::Placement placement() const override { return placement_; }
  // The array, or nullptr while it is a tensor alone (Arrays::Of).
  pybind11::handle array() const { return array_.load(); }
  // The tensor that it was made of. The array has the same memory.
  const at::Tensor& tensor() const { return tensor_; }
  std::optional<size_t> producer() const { return producer_; }
  // With Python's lock.
  void SetArray(pybind11::object array);
  // Replaces the array by one that has the same data in another place. With Python's lock.
  void Move(pybind11::object array, ir::Placement placement);

 private:
  const at::Tensor tensor_;
  std::atomic<PyObject*> array_ = nullptr;
  const int64_t num_bytes_;
  const std::optional<size_t> producer_;
  std::atomic<ir::Placement> placement_ = ir::kOneDevice;
};

// A buffer's data in the host's memory.
struct HostData {
  pybind11::object owner;  // Keeps the jax array alive; null for a tensor's memory.
  const void* start;
  size_t num_bytes;
};

// Waits for the data, which counts as time of its executable. With Python's lock.
HostData DataOf(const PyBuffer& buffer);

// The data of a jax array, in its own memory where numpy can read that. Waits for it.
pybind11::array HostArray(pybind11::handle array);

}  // namespace torch_xla_lite::python

#endif  // TORCH_XLA_LITE_CSRC_PYTHON_BUFFER_H_
