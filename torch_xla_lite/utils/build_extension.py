"""The build_ext command for packages with CUDA sources: compiles `.cu` files with nvcc.

    setup(ext_modules=[XLAExtension("example._cuda_handlers", ["example/handlers.cu"])],
          cmdclass={"build_ext": BuildExtension})

setuptools itself compiles and links the rest, as it does without this command.
"""

import copy
import os
from pathlib import Path

import setuptools
from setuptools.command.build_ext import build_ext

from .cpp_extension import find_nvcc


class BuildExtension(build_ext):
    """setuptools' build_ext, to which nvcc is known."""

    def build_extension(self, ext: setuptools.Extension) -> None:
        cuda = [source for source in ext.sources if source.endswith(".cu")]
        if cuda:
            # Of a copy: sdist and editable installs read the sources of the original.
            ext, original = copy.copy(ext), ext
            ext.sources = [source for source in original.sources if source not in cuda]
            ext.extra_objects = [
                *original.extra_objects,
                *(self._compile_cuda(original, source) for source in cuda),
            ]
            # Link again where an object is newer.
            ext.depends = [*original.depends, *ext.extra_objects]
        super().build_extension(ext)

    def _compile_cuda(self, ext: setuptools.Extension, source: str) -> str:
        """Compiles one source.

        Returns:
          The path of the object.
        """
        target = Path(self.build_temp, f"{source}.o")
        target.parent.mkdir(parents=True, exist_ok=True)
        host = ["-ccbin", os.environ["CXX"]] if "CXX" in os.environ else []
        macros = [
            f"-D{name}" if value is None else f"-D{name}={value}"
            for name, value in ext.define_macros
        ]
        folders = [f"-I{folder}" for folder in ext.include_dirs]
        self.spawn(
            [
                str(find_nvcc()),
                "-O2",
                "-Xcompiler",
                "-fPIC",
                *host,
                *macros,
                *folders,
                *ext.extra_compile_args,
                "-c",
                source,
                "-o",
                str(target),
            ]
        )
        return str(target)
