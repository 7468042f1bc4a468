#include "torch_xla_lite/csrc/python/exceptions.h"

#include <pybind11/pybind11.h>
#include <torch/csrc/Exceptions.h>

#include <new>

namespace py = pybind11;

namespace torch_xla_lite::python {
namespace {

// The class of an exception of Python, else nullptr.
PyObject* PythonType(const std::exception& error) {
  if (const auto* ours = dynamic_cast<const py::error_already_set*>(&error))
    return ours->type().ptr();
  const auto* torchs = dynamic_cast<const python_error*>(&error);
  return torchs == nullptr ? nullptr : torchs->type;
}

}  // namespace

bool IsInterrupt(const std::exception& error) {
  PyObject* const type = PythonType(error);
  if (type == nullptr) return false;
  const py::gil_scoped_acquire gil;
  return PyErr_GivenExceptionMatches(type, PyExc_Exception) == 0 ||
         PyErr_GivenExceptionMatches(type, PyExc_Warning) != 0;
}

bool IsTransient(const std::exception& error) {
  PyObject* const type = PythonType(error);
  if (type == nullptr) return dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  if (IsInterrupt(error)) return true;
  const py::gil_scoped_acquire gil;
  return PyErr_GivenExceptionMatches(type, PyExc_MemoryError) != 0;
}

bool IsNotImplemented(const std::exception& error) {
  PyObject* const type = PythonType(error);
  if (type == nullptr) return false;
  const py::gil_scoped_acquire gil;
  return PyErr_GivenExceptionMatches(type, PyExc_NotImplementedError) != 0;
}

}  // namespace torch_xla_lite::python
