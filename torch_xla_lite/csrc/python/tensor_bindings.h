// The functions of _XLAC that take or give torch tensors.
//
// On their own because torch's headers for Python are the most expensive ones that the bridge
// includes.

#ifndef TORCH_XLA_LITE_CSRC_PYTHON_TENSOR_BINDINGS_H_
#define TORCH_XLA_LITE_CSRC_PYTHON_TENSOR_BINDINGS_H_

#include <pybind11/pybind11.h>

namespace torch_xla_lite::python {

void BindTensors(pybind11::module_& module);

}  // namespace torch_xla_lite::python

#endif  // TORCH_XLA_LITE_CSRC_PYTHON_TENSOR_BINDINGS_H_
