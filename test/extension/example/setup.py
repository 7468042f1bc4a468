"""The part of the example package that pyproject.toml cannot say: its C++ and CUDA code."""

from setuptools import setup

from torch_xla_lite.utils.build_extension import BuildExtension
from torch_xla_lite.utils.cpp_extension import XLAExtension, find_nvcc

_HEADERS = ["xla_isotonic/isotonic.h"]

extensions = [
    XLAExtension("xla_isotonic._handlers", ["xla_isotonic/handlers.cc"], depends=_HEADERS)
]
# Wherever there is a compiler for it; that a GPU is missing here says nothing about where it runs.
if find_nvcc():
    extensions.append(
        XLAExtension("xla_isotonic._cuda_handlers", ["xla_isotonic/handlers.cu"], depends=_HEADERS)
    )

setup(
    packages=["xla_isotonic"],
    ext_modules=extensions,
    cmdclass={"build_ext": BuildExtension},
)
