// The functions of _XLAC that take or return torch tensors.
//
// They have their own file because torch's headers for Python take the longest to compile.

#ifndef TORCH_XLA_LITE_CSRC_PYTHON_TENSOR_BINDINGS_H_
#define TORCH_XLA_LITE_CSRC_PYTHON_TENSOR_BINDINGS_H_

#include <pybind11/pybind11.h>

namespace torch_xla_lite::python {

void BindTensors(pybind11::module_& module);

}  // namespace torch_xla_lite::python

#endif  // TORCH_XLA_LITE_CSRC_PYTHON_TENSOR_BINDINGS_H_
