"""The versions and options that the package was built with, like torch.__config__.

    print(torch_xla_lite.__config__.show())
    # torch_xla_lite 0.1.0 was built with:
    #   - torch 2.13.0
    #   - jaxlib 0.10.2
    #   - Python 3.11
    #   - GCC 12.2.0, C++20, _GLIBCXX_USE_CXX11_ABI=1
    #   - CUDA off: torch and jax are CPU builds
    #   - mode: release

The build writes them into _build_info.py. The same sources and tools give the same text: it
contains no time, commit or path.
"""

from __future__ import annotations

from . import _build_info
from .startup import preflight


def parameters() -> dict[str, str]:
    """The constants of _build_info, with their names in lower case."""
    return {name.lower(): str(value) for name, value in vars(_build_info).items() if name.isupper()}


def version() -> str:
    """The version of the package; "unknown" if it is not installed."""
    found = preflight.distribution()
    return found.version if found else "unknown"


def show() -> str:
    """A readable description, with one line for each part."""
    found = parameters()
    compiler = [found.pop("compiler"), found.pop("cpp_standard")]
    if abi := found.pop("cxx11_abi"):
        compiler.append(f"_GLIBCXX_USE_CXX11_ABI={abi}")
    lines = [
        f"torch {found.pop('torch_version')}",
        f"jaxlib {found.pop('jaxlib_version')}",
        f"Python {found.pop('python_version')}",
        ", ".join(compiler),
        f"CUDA {found.pop('cuda')}",
        *(f"{name.replace('_', ' ')}: {value}" for name, value in found.items()),
    ]
    return "".join(
        [f"torch_xla_lite {version()} was built with:\n", *(f"  - {line}\n" for line in lines)]
    )
