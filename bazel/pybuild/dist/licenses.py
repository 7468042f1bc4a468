"""Collects the licences of the code that is compiled into a wheel: texts and an SPDX expression.

    text(root, ["torch_xla_lite/_XLAC.so", ...])             # content of LICENSE in a wheel
    expression("BSD-3-Clause", ["torch_xla_lite/_XLAC.so"])  # "BSD-3-Clause AND MIT AND NCSA"

The texts come from the installed packages, so they belong to the versions that are compiled in. A
test checks that every folder of third_party/ has a row here.
"""

import sys
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
# The identifier in the metadata of NVIDIA's own packages.
_CUDA_LICENSE = "LicenseRef-NVIDIA-Proprietary"
_SECTION = "-" * 80


class Part(NamedTuple):
    """Code of another project that is compiled in.

    Attributes:
      name: of the project.
      package: the installed distribution that contains its licence.
      file: the licence, in the `licenses` folder of the distribution.
      included_part: which part of it is compiled in.
      license: as an SPDX identifier.
      libraries: the shared objects that it is compiled into.
    """

    name: str
    package: str
    file: str
    included_part: str
    license: str
    libraries: tuple[str, ...]


# Folder of third_party -> its part in a wheel.
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
        # c10/util/ArrayRef.h has the older of the licences in that file. The licence of PyTorch's
        # code from Boost (hash.h, flat_hash_map.h) requires nothing for machine code.
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
    "bazel_rules": "tells Bazel how to build",
    "compiler": "checks that it is the one that the tree is configured for",
    "googletest": "only in tests",
    "python": "its headers only declare the C API of the interpreter that loads the module",
    "torch_xla_lite_lib": "our own library",
}


def text(root: Path, built: Iterable[str], toolkit: Path | None = None) -> str:
    """Our licence, followed by those of the code that is compiled in.

    Args:
      root: of the tree.
      built: paths in the wheel of the files that Bazel built.
      toolkit: folder of the CUDA toolkit that the CUDA library was built with.

    Raises:
      BuildError: an installed package does not contain its licence.
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
    """The SPDX expression for a wheel.

    Args:
      ours: the expression for our own code.
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
    """The projects that are compiled into some shared objects."""
    rows = [part for parts in SHIPPED.values() for part in parts]
    return [part for part in rows if not libraries.isdisjoint(part.libraries)]


def _texts(parts: list[Part]) -> Iterator[tuple[str, str]]:
    """The title and the licence of each project."""
    installed = packages.installed({part.package for part in parts}, packages.search_path())
    for part in parts:
        package = installed.get(part.package)
        file = package.info / "licenses" / part.file if package else None
        if package is None or file is None or not file.is_file():
            raise BuildError(
                f"The licence of {part.name}, which is compiled in, was not found: "
                f"{file or part.package} is missing.",
                f"Reinstall the package:  {sys.executable} -m pip install --force-reinstall "
                f"--no-deps {part.package}",
            )
        version = package.version.partition("+")[0]
        yield f"{part.name} ({part.included_part}; {part.package} {version})", _first(file)


def _first(file: Path) -> str:
    """The first licence of a file.

    jaxlib's file continues with the licences of the code in its binary, which is not compiled in.
    """
    content = file.read_text(encoding="utf-8").strip().removeprefix(_SECTION)
    return content.partition(f"\n{_SECTION}\n")[0].strip("\n")


def _cuda(toolkit: Path | None) -> str:
    """The licence in the toolkit or in NVIDIA's Python packages, or its address."""
    packaged = packages.installed(["nvidia-cuda-runtime"], packages.search_path())
    folders = [toolkit] if toolkit else []
    folders += [package.info / "licenses" for package in packaged.values()]
    for folder in folders:
        for name in ("EULA.txt", "License.txt", "LICENSE"):
            if (folder / name).is_file():
                return (folder / name).read_text(encoding="utf-8", errors="replace").strip()
    return (
        "libcudart_static is distributable under Attachment A of the End User License Agreement\n"
        "for the NVIDIA CUDA Toolkit, whose text is not in this toolkit:\n"
        "https://docs.nvidia.com/cuda/eula/"
    )
