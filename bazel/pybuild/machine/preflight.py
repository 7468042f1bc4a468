"""What must be there before a build is worth starting: a usable Python, and the packages this tree
is built for.

    check(root, installed(BUILT_AGAINST, sys.path))     # raises BuildError, or all is well

Nothing is imported from torch or jax: a broken one must give a message and not a traceback.
"""

import os
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import packages


def check(root: Path, installed: Mapping[str, packages.Package]) -> None:
    """Checks Python and the packages.

    Args:
      root: of the tree, where requirements.txt is.
      installed: what was found of packages.BUILT_AGAINST.

    Raises:
      BuildError: the first thing that is missing or of the wrong version.
    """
    check_python(sys.implementation.name, Path(sysconfig.get_path("include")))
    check_packages(packages.wanted(root), installed)
    check_places(installed, packages.own_folders())


def check_python(implementation: str, include: Path) -> None:
    """Checks that extension modules can be compiled for this interpreter."""
    if implementation != "cpython":
        raise BuildError(
            f"{sys.executable} is {implementation}, and torch exists for CPython only.",
            "Make an environment with CPython:  python3 -m venv .venv",
        )
    if not (include / "Python.h").exists():
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise BuildError(
            f"The C headers of {sys.executable} are missing: there is no {include / 'Python.h'}.",
            f"Install them, then run the command again:  sudo apt-get install python{version}-dev",
        )


def check_cache(folder: Path) -> None:
    """Checks that results of actions can be kept in a folder, which need not be there yet."""
    place = next(place for place in (folder, *folder.parents) if place.exists())
    if not os.access(place, os.W_OK):
        raise BuildError(
            f"Results of builds are kept in {folder}, and you may not write to {place}.",
            "Name a folder where you may:  export XDG_CACHE_HOME=... "
            "TORCH_XLA_LITE_BAZEL_STARTUP_OPTIONS=--output_user_root=...",
        )


def check_packages(wanted: Mapping[str, str], installed: Mapping[str, packages.Package]) -> None:
    """Checks that what the C++ code is built against is there, in the version that is wanted."""
    install = f"{sys.executable} -m pip install -r requirements.txt"
    for name in packages.BUILT_AGAINST:
        package = installed.get(name)
        pin = wanted.get(name)
        if package is None:
            raise BuildError(
                f"{name} is not installed for {sys.executable}.",
                f"Install what this tree is built for:  {install}",
            )
        if pin is not None and not packages.same_release(package.version, pin):
            raise BuildError(
                f"This tree is built for {name} {pin}, but {name} {package.version} is installed\n"
                f"in {package.info.parent}.",
                f"Install what this tree is built for:  {install}",
            )


def check_places(installed: Mapping[str, packages.Package], own: list[str]) -> None:
    """Checks that Bazel's rules see the same packages, which read nothing of a shell or a user.

    Args:
      installed: what was found.
      own: folders where packages of the interpreter are, whoever calls it.
    """
    places = {os.path.realpath(folder) for folder in own}
    for name, package in installed.items():
        # An isolated build brings its own pybind11, and Bazel is told where.
        if (
            name in ("torch", "jax", "jaxlib")
            and os.path.realpath(package.info.parent) not in places
        ):
            raise BuildError(
                f"{name} is in {package.info.parent}, where only PYTHONPATH or settings of yours "
                "lead; Bazel reads neither.",
                "Install it in an environment:  python3 -m venv .venv && "
                ".venv/bin/python -m pip install -r requirements.txt",
            )


def check_library(version: str, installed: packages.Package | None) -> None:
    """Checks that the library is installed that a wheel without it requires.

    Args:
      version: of the package that is made.
      installed: what was found of packages.LIBRARY.
    """
    if installed is not None and installed.version == version:
        return
    name = f"torch_xla_lite_lib {version}"
    problem = f"{name} is not installed for {sys.executable}."
    if installed is not None:
        problem = (
            f"This tree is version {version}, but torch_xla_lite_lib {installed.version} "
            f"is installed\nin {installed.info.parent}."
        )
    raise BuildError(
        f"BUILD_PYTHON_ONLY=1 links to an installed library. {problem}",
        "Make and install the one of this tree:  "
        f"BUILD_PYTHON_ONLY= BUILD_LIB_WHL=1 {sys.executable} setup.py bdist_wheel && "
        f"{sys.executable} -m pip install --no-deps --force-reinstall "
        f"dist/torch_xla_lite_lib-{version}-*.whl",
    )
