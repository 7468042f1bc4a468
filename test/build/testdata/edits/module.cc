#include <pybind11/pybind11.h>

#include "torch_xla_lite/leaf.h"

PYBIND11_MODULE(_XLAC, module) { module.def("leaf", &torch_xla_lite::Leaf); }
