"""Builds C++ and CUDA code of other packages against torch_xla_lite, and registers its handlers.

In the setup.py of a package that has an XLA FFI handler, and in its `__init__.py`:

    setup(ext_modules=[XLAExtension("example._handlers", ["example/handlers.cc"])])

    register_ffi_library("example._handlers", {"example.softsign": "ExampleSoftsign"})

    @torch_xla_lite.register_lowering("example::softsign")
    def _(x: jax.Array) -> jax.Array:
        return jax.ffi.ffi_call("example.softsign", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

`ExampleSoftsign` is a symbol that XLA_FFI_DEFINE_HANDLER_SYMBOL of xla/ffi/api/ffi.h defines. Such
a package is installed without build isolation, which would hide torch_xla_lite from its setup.py:

    python -m pip install --no-build-isolation .

docs/extensions.md describes the whole way: op, attributes, dtypes, vmap, gradient, tests, CUDA.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import torch

if TYPE_CHECKING:
    import setuptools

_PACKAGE = Path(__file__).resolve().parent.parent
_CPP = (".cc", ".cpp", ".cxx")
_CUDA = ".cu"


def include_paths() -> list[str]:
    """Folders for the compiler's -I: of torch_xla_lite's public headers and of XLA's FFI headers.

    Headers under csrc/tensor include torch's.

    Raises:
      RuntimeError: this installation has no headers.
    """
    return [str(_header_folder()), jax.ffi.include_dir()]


def library_paths() -> list[str]:
    """Folders for the linker's -L: the one of libtorch_xla_lite.so.

    Raises:
      RuntimeError: this installation has no libraries.
    """
    folder = _PACKAGE / "lib"
    if not (folder / "libtorch_xla_lite.so").exists():
        raise RuntimeError(f"torch_xla_lite in {_PACKAGE} has no libraries.\n{_remedy()}")
    return [str(folder)]


def find_nvcc() -> Path | None:
    """CUDA's compiler: in CUDA_HOME or CUDA_PATH, on PATH, or in /usr/local/cuda.

    Whether a package *builds* its CUDA half depends on this, never on a GPU: machines that build
    often have none.
    """
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if home:
        found = shutil.which("nvcc", path=Path(home) / "bin")
    else:
        found = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    return Path(found) if found else None


def XLAExtension(name: str, sources: Sequence[str], **kwargs: Any) -> setuptools.Extension:
    """An extension of setuptools, in C++20 or CUDA, that is linked against torch_xla_lite.

    It finds libtorch_xla_lite.so when it is loaded if both packages are installed side by side, or
    if torch_xla_lite was imported before. It need not be a Python module: register_ffi_library
    takes any shared object.

    Args:
      name: dotted, as Python would import it: this decides where the file is put.
      sources: relative to setup.py; all C++, or all CUDA (.cu). CUDA needs
        `cmdclass={"build_ext": torch_xla_lite.utils.build_extension.BuildExtension}` in setup().
        It is compiled for the GPU architectures that `extra_compile_args`, which go to nvcc then,
        name (`-arch=sm_90`), else for those of TORCH_CUDA_ARCH_LIST, else for all major ones.
      **kwargs: as for setuptools.Extension; added to what this function sets.

    Raises:
      ValueError: a source is missing, of another language, or of another language than the others.
      RuntimeError: this installation has no headers or no libraries, or nvcc is missing.
    """
    import setuptools

    nvcc = _check(name, sources)
    own_headers, other_headers = include_paths()
    # Where both packages are installed side by side.
    run_path = "/".join(["$ORIGIN", *[".."] * name.count("."), "torch_xla_lite", "lib"])
    ours = {
        "include_dirs": [own_headers],
        "library_dirs": library_paths(),
        "libraries": ["torch_xla_lite"],
        "define_macros": [("_GLIBCXX_USE_CXX11_ABI", str(int(torch.compiled_with_cxx11_abi())))],
        "extra_link_args": [f"-Wl,-rpath,{run_path}"],
    }
    user_flags = kwargs.get("extra_compile_args", [])
    # System headers: the user cannot change what a compiler warns of in them.
    flags = ["-std=c++20", "-isystem", other_headers]
    if nvcc:
        ours["library_dirs"] += _cuda_library_paths(nvcc)
        # Inside the extension, so that it loads on machines without CUDA.
        ours["libraries"] += ["cudart_static", "rt", "dl", "pthread"]
        if not any("arch" in flag for flag in user_flags):
            flags += _architectures()
    for key, values in ours.items():
        kwargs[key] = [*kwargs.get(key, []), *values]
    # First, so that the flags of the user win.
    kwargs["extra_compile_args"] = [*flags, *user_flags]
    return setuptools.Extension(name, list(sources), language="c++", **kwargs)


def _architectures() -> list[str]:
    """Flags of nvcc for TORCH_CUDA_ARCH_LIST, which torch reads; without it for all major ones."""
    if not os.environ.get("TORCH_CUDA_ARCH_LIST"):
        return ["-arch=all-major"]
    from torch.utils.cpp_extension import _get_cuda_arch_flags  # slow

    return _get_cuda_arch_flags()


def register_ffi_library(
    library: str | Path, handlers: Mapping[str, str], *, platform: str = "cpu"
) -> None:
    """Makes the handlers of a shared object known to XLA. It stays loaded.

    Args:
      library: its name as it was given to XLAExtension, or, as a Path, its file.
      handlers: the name by which jax.ffi.ffi_call finds a handler -> its symbol in the library.
      platform: of the devices that it is for: "cpu" or "CUDA".

    Raises:
      ImportError: the library is not there, does not load, or has no such symbol.
    """
    file = library if isinstance(library, Path) else _built(library)
    try:
        loaded = ctypes.CDLL(str(file))
    except OSError as error:
        raise ImportError(
            f"{file} does not load beside this torch_xla_lite: {error}\n"
            "Build it again:  python -m pip install --no-build-isolation --force-reinstall ..."
        ) from error
    for target, symbol in handlers.items():
        try:
            handler = getattr(loaded, symbol)
        except AttributeError:
            raise ImportError(
                f"{file} has no symbol {symbol}.\n"
                f"Define it in C++:  XLA_FFI_DEFINE_HANDLER_SYMBOL({symbol}, ...)"
            ) from None
        jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(handler), platform=platform)


def _header_folder() -> Path:
    installed = _PACKAGE / "include"
    if installed.is_dir():
        return installed
    # An editable install: the sources themselves.
    if (_PACKAGE / "csrc" / "ir" / "shape.h").exists():
        return _PACKAGE.parent
    raise RuntimeError(f"torch_xla_lite in {_PACKAGE} has no headers.\n{_remedy()}")


def _remedy() -> str:
    if (_PACKAGE.parent / "setup.py").exists():
        return "Build it:  python setup.py develop"
    return (
        "They come with the wheel torch_xla_lite, and with torch_xla_lite_lib:  "
        "python -m pip install --force-reinstall --no-deps torch_xla_lite_lib"
    )


def _check(name: str, sources: Sequence[str]) -> Path | None:
    """Checks the sources. Returns the compiler for them if they are CUDA."""
    if not sources:
        raise ValueError(f"XLAExtension {name} has no sources.\nName its C++ files in `sources`.")
    for source in sources:
        if not str(source).endswith((*_CPP, _CUDA)):
            raise ValueError(
                f"XLAExtension {name}: {source} is neither C++ ({', '.join(_CPP)}) nor CUDA "
                f"({_CUDA}).\nPut objects of other compilers into `extra_objects`."
            )
        if not Path(source).is_file():
            raise ValueError(
                f"XLAExtension {name}: there is no {source} in {Path.cwd()}.\n"
                "Name `sources` relative to setup.py."
            )
    are_cuda = {str(source).endswith(_CUDA) for source in sources}
    if len(are_cuda) == 2:
        raise ValueError(
            f"XLAExtension {name} has both C++ and CUDA sources.\n"
            "Make two extensions: XLA looks for the handlers of each platform on their own."
        )
    if False in are_cuda:
        return None
    nvcc = find_nvcc()
    if nvcc is None:
        raise RuntimeError(
            f"XLAExtension {name} has CUDA sources, but there is no nvcc.\n"
            "Name the CUDA toolkit in CUDA_HOME, or leave this extension out where "
            "cpp_extension.find_nvcc() is None."
        )
    return nvcc


def _cuda_library_paths(nvcc: Path) -> list[str]:
    # `nvcc` may be a script that calls the one of a toolkit; only that knows where it is.
    output = subprocess.run(
        [nvcc, "--dryrun", "none.cu"], capture_output=True, text=True, check=False
    ).stderr
    top = re.search(r"^#\$ TOP=(.*)$", output, re.MULTILINE)
    home = Path(top[1].strip()) if top else nvcc.parent.parent
    folders = [home / "lib64", home / "lib", *sorted(home.glob("targets/*/lib"))]
    return [str(folder) for folder in folders if (folder / "libcudart_static.a").exists()]


def _built(name: str) -> str:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ImportError(
            f"{name} has not been built.\n"
            "Build it:  python -m pip install --no-build-isolation -e .",
            name=name,
        )
    return spec.origin
