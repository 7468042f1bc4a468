// jax's arrays for the data of tensors and buffers.
//
//   Arrays arrays(compiler);
//   arrays.Of(buffer);                 // its jax.Array
//   arrays.BufferOf(CopyOf(data, shape));
//
// With Python's lock, where nothing else is said.

#ifndef TORCH_XLA_LITE_CSRC_PYTHON_ARRAYS_H_
#define TORCH_XLA_LITE_CSRC_PYTHON_ARRAYS_H_

#include <ATen/core/Tensor.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <span>

#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/ir/placement.h"
#include "torch_xla_lite/csrc/ir/ref.h"
#include "torch_xla_lite/csrc/ir/shape.h"

namespace torch_xla_lite::python {

// Tensors of the CPU whose memory has the alignment that jax asks for. Without Python's lock.
at::Tensor Empty(const ir::Shape* shape);
at::Tensor CopyOf(const void* data, const ir::Shape* shape);

// A graph's scalars as int32[n, 2], because jax would truncate 64-bit arguments to 32 bits.
pybind11::object PackScalars(std::span<const uint64_t> scalars);
bool IsJaxImported();
// XLA's client, where there is one by now, is never released: at the end of a forked process it
// would wait for threads that were not forked.
void KeepClient();

class Arrays {
 public:
  // compiler: an object with the functions of compiler.Compiler, which has their meaning.
  explicit Arrays(const pybind11::object& compiler);

  // Whether the CPU's kernels can read the device's memory.
  bool HasHostMemory() const;
  // torch's number of a numpy.dtype. Throws TypeError if torch has none.
  int TorchDtype(pybind11::handle dtype) const;
  // The jax.Array of a buffer, which owns it.
  pybind11::handle Of(ir::Buffer* buffer) const;
  // That of a tensor, which it holds: no data is copied where jax can use its memory.
  pybind11::object Uploaded(const at::Tensor& tensor) const;
  pybind11::object Copied(pybind11::handle array) const { return copy_(array); }
  // Takes a tensor that nothing else refers to. Takes Python's lock.
  ir::Ref<ir::Buffer> BufferOf(at::Tensor tensor) const;
  // The data of a buffer in another place. Takes Python's lock.
  ir::Ref<ir::Buffer> Placed(const ir::Shape* shape, ir::Ref<ir::Buffer> buffer,
                             ir::Placement placement) const;
  // Moves a buffer's data, which stays there.
  void Move(ir::Buffer* buffer, ir::Placement placement) const;

 private:
  pybind11::function has_host_memory_;
  pybind11::function upload_;
  pybind11::function copy_;
  pybind11::function place_;
  pybind11::dict dtypes_;
};

}  // namespace torch_xla_lite::python

#endif  // TORCH_XLA_LITE_CSRC_PYTHON_ARRAYS_H_
