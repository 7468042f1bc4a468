"""Licences of what is compiled into a wheel: their texts appended to ours, and all as one SPDX
expression.

    text(root, ["torch_xla_lite/_XLAC.so", ...])      # what LICENSE in a wheel says
    expression("BSD-3-Clause", ["torch_xla_lite/_XLAC.so"])  # "BSD-3-Clause AND MIT AND NCSA"

They are taken from the installed packages when a wheel is made, so that they are those of the
versions whose code is in it. Every folder of third_party/ has a row here; a test sees to it.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import packages

OURS = "LICENSE"
# The shared objects of a wheel.
_MODULE = "_XLAC.so"
_BRIDGE = "libtorch_xla_lite.so"
_FFI = "libtorch_xla_lite_ffi.so"
_CUDA_LIBRARY = "libtorch_xla_lite_cuda.so"
_WITH_TORCH = (_MODULE, _BRIDGE, _FFI)
# What NVIDIA's own packages say.
_CUDA_LICENSE = "LicenseRef-NVIDIA-Proprietary"
_SECTION = "-" * 80


class Part(NamedTuple):
    """Code of others that is compiled in.

    Attributes:
      name: of the project.
      package: the distribution that brings its licence.
      file: the licence, below the `licenses` folder of the distribution.
      what: which of its code is compiled in.
      license: as an SPDX identifier.
      libraries: the shared objects that it is compiled into.
    """

    name: str
    package: str
    file: str
    what: str
    license: str
    libraries: tuple[str, ...]


# Folder of third_party -> what of it is in a wheel.
SHIPPED = {
    "jaxlib": (
        Part(
            "XLA",
            "jaxlib",
            "LICENSE.txt",
            "the headers of its foreign functions",
            "Apache-2.0",
            (_FFI, _CUDA_LIBRARY),
        ),
    ),
    "pybind11": (
        Part("pybind11", "pybind11", "LICENSE", "its headers", "BSD-3-Clause", (_MODULE,)),
    ),
    "torch": (
        Part("PyTorch", "torch", "LICENSE", "its headers", "BSD-3-Clause", _WITH_TORCH),
        Part(
            "{fmt}",
            "torch",
            "third_party/fmt/LICENSE",
            "headers that PyTorch's include",
            "MIT",
            _WITH_TORCH,
        ),
        # c10/util/ArrayRef.h is under the older of the licences in that file. What PyTorch took of
        # Boost (hash.h, flat_hash_map.h) asks for nothing where it is in machine code only.
        Part(
            "LLVM",
            "torch",
            "third_party/llvm-openmp/LICENSE.txt",
            "containers in the headers of PyTorch and pybind11",
            "NCSA",
            _WITH_TORCH,
        ),
    ),
    # The CUDA runtime, linked into the CUDA library; see _cuda.
    "cuda": (),
}

# Folder of third_party -> why nothing of it is in a wheel.
NOT_SHIPPED = {
    "aarch64_gcc": "a compiler; its libraries are those of the system that the code runs on",
    "bazel_rules": "tells Bazel how to build",
    "googletest": "is in tests only",
    "python": "the interface that extension modules are written to",
    "torch_xla_lite_lib": "our own library",
}


def text(root: Path, built: Iterable[str], toolkit: Path | None = None) -> str:
    """Our licence and those of all that is compiled in.

    Args:
      root: of the tree.
      built: paths in the wheel of what Bazel has made for it.
      toolkit: folder of the CUDA toolkit that the CUDA library was built with.

    Raises:
      BuildError: a package has no licence where it should be.
    """
    ours = (root / OURS).read_text(encoding="utf-8")
    names = _libraries(built)
    if not names:
        return ours
    found = list(_texts(_parts(names)))
    if _CUDA_LIBRARY in names:
        found.append(("NVIDIA CUDA (its runtime library)", _cuda(toolkit)))
    titles = "".join(f"  - {title}\n" for title, _ in found)
    sections = "".join(f"\n{_SECTION}\n{title}\n\n{licence}\n" for title, licence in found)
    return (
        f"{ours}\n{_SECTION}\nCompiled into this package is code of others:\n\n{titles}{sections}"
    )


def expression(ours: str, built: Iterable[str]) -> str:
    """The SPDX expression of a wheel.

    Args:
      ours: that of our own code.
      built: as for `text`.
    """
    names = _libraries(built)
    others = {part.license for part in _parts(names)}
    if _CUDA_LIBRARY in names:
        others.add(_CUDA_LICENSE)
    return " AND ".join([ours, *sorted(others - {ours})])


def _libraries(built: Iterable[str]) -> set[str]:
    return {Path(path).name for path in built if path.endswith(".so")}


def _parts(libraries: set[str]) -> list[Part]:
    """What is compiled into some shared objects."""
    rows = [part for parts in SHIPPED.values() for part in parts]
    return [part for part in rows if not libraries.isdisjoint(part.libraries)]


def _texts(parts: list[Part]) -> Iterator[tuple[str, str]]:
    """Title and licence of each project."""
    installed = packages.installed({part.package for part in parts}, packages.search_path())
    for part in parts:
        package = installed.get(part.package)
        file = package.info / "licenses" / part.file if package else None
        if package is None or file is None or not file.is_file():
            raise BuildError(
                f"The licence of {part.name}, which is compiled in, is not to be found: "
                f"{file or part.package} is missing.",
                f"Install it again:  python -m pip install --force-reinstall --no-deps "
                f"{part.package}, or correct bazel/pybuild/dist/licenses.py.",
            )
        version = package.version.partition("+")[0]
        yield f"{part.name} ({part.what}; {part.package} {version})", _first(file)


def _first(file: Path) -> str:
    """A licence, without those of other projects that follow in the same file.

    jaxlib's own stands before those of all that is in its binary, of which we take nothing.
    """
    content = file.read_text(encoding="utf-8").strip().removeprefix(_SECTION)
    return content.partition(f"\n{_SECTION}\n")[0].strip("\n")


def _cuda(toolkit: Path | None) -> str:
    """What NVIDIA's toolkit or its Python packages say, or where to read it."""
    packaged = packages.installed(["nvidia-cuda-runtime"], packages.search_path())
    folders = [toolkit] if toolkit else []
    folders += [package.info / "licenses" for package in packaged.values()]
    for folder in folders:
        for name in ("EULA.txt", "License.txt", "LICENSE"):
            if (folder / name).is_file():
                return (folder / name).read_text(encoding="utf-8", errors="replace").strip()
    return (
        "libcudart_static is distributable under Attachment A of the End User License Agreement\n"
        "for the NVIDIA CUDA Toolkit, whose text this toolkit did not bring:\n"
        "https://docs.nvidia.com/cuda/eula/"
    )
