"""The part of the example package that pyproject.toml cannot say: its C++ code."""

from setuptools import setup

from torch_xla_lite.utils.cpp_extension import XLAExtension

setup(
    packages=["xla_isotonic"],
    ext_modules=[XLAExtension("xla_isotonic._handlers", ["xla_isotonic/handlers.cc"])],
)
