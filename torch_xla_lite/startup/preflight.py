"""Checks versions and variables before the compiled part of the package is loaded, and loads it.

    preflight.check()                      # variables; Python, torch, jaxlib, jax as built for
    _XLAC = preflight.load_extension()     # the compiled module

The extension calls torch's C++ functions by their mangled names. With another torch the dynamic
loader would fail with `undefined symbol: _ZN3c10...`, or, worse, not fail. So the versions that it
was built for, which the build writes into _build_info.py, are compared first. The last line of
every error is the command that repairs it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from . import edits, late_jax, variables

if TYPE_CHECKING:
    from importlib.metadata import Distribution

# Links are not resolved: in Bazel's tests the sources are links, and the built files are beside the
# links.
PACKAGE = Path(__file__).absolute().parents[1]


def check() -> None:
    """Raises ImportError, or ValueError for a variable, if the package cannot work here."""
    variables.check(os.environ)
    info = build_info()
    check_python(info.PYTHON_VERSION)
    check_version("torch", built_for=info.TORCH_VERSION)
    # jaxlib before jax: importing jax with an unsuitable jaxlib raises jax's own error.
    check_version("jaxlib", built_for=info.JAXLIB_VERSION)
    # Each jax is released with a jaxlib of the same version, and the lowerings are written for that
    # jax.
    check_version("jax", built_for=info.JAXLIB_VERSION)
    if edited := edits.newest(PACKAGE):
        print(f"torch_xla_lite: {outdated(edited)}:  python setup.py develop", file=sys.stderr)


def outdated(edited: str) -> str:
    """What to say of libraries that are older than a source."""
    return f"the libraries are older than {edited}; build them"


def load_extension() -> ModuleType:
    """Imports the compiled module. Raises ImportError if it is missing or does not load."""
    name = f"{PACKAGE.name}._XLAC"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ImportError(
            f"torch_xla_lite's compiled extension is not in {PACKAGE}.\n{build_it()}"
        ) from None
    except ImportError as error:
        # The loader's message names the missing symbol or library, for maintainers; the command is
        # for the user.
        raise ImportError(
            f"torch_xla_lite's compiled extension does not load here: {error}\n{build_it('again')}"
        ) from error


def build_info() -> ModuleType:
    """The module that the build wrote. Raises ImportError if nothing was built."""
    name = f"{PACKAGE.name}._build_info"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ImportError(
            f"torch_xla_lite in {PACKAGE} has not been built.\n{build_it()}"
        ) from None


def check_python(built_for: str) -> None:
    """Raises ImportError if this is not the version of Python that the package was built for."""
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    wanted = ".".join(built_for.split(".")[:2])
    if running != wanted:
        raise ImportError(
            f"torch_xla_lite was built for Python {wanted} "
            f"but {sys.executable} is Python {running}.\n"
            f"{build_it('for this Python')}"
        )


def check_version(
    package: str, *, built_for: str, installed: Callable[[str], str] | None = None
) -> None:
    """Raises ImportError if a package is missing or has another version.

    Args:
      package: its import name.
      built_for: the version that torch_xla_lite was built for.
      installed: returns the installed version; None to ask the package.
    """
    wanted = _public(built_for)
    if importlib.util.find_spec(package) is None:
        raise ImportError(
            f"torch_xla_lite needs {package} {wanted}, "
            f"which is not installed for {sys.executable}.\n"
            f"Install it:  python -m pip install '{package}=={wanted}'"
        )
    found = _public((installed or _version_of_module)(package))
    if found != wanted:
        raise ImportError(
            f"torch_xla_lite was built for {package} {wanted} but {package} {found} is installed.\n"
            f"{build_it(f'for this {package}', install=package, found=found)}"
        )


def _version_of_module(package: str) -> str:
    if package == "jax" and package not in sys.modules:
        # It is not imported before it is needed: late_jax.py.
        return runpy.run_path(str(late_jax.folder() / "version.py"))["__version__"]
    # jaxlib.version can be imported without loading XLA.
    module = importlib.import_module("jaxlib.version" if package == "jaxlib" else package)
    return module.__version__


def _public(version: str) -> str:
    """Removes a local part such as `+cpu`: all builds of a release have the same C++ interface."""
    return version.partition("+")[0]


def build_it(how: str = "", install: str = "", found: str = "") -> str:
    """The last line of an error: the command to run, in a checkout or with an installed wheel.

    Args:
      how: such as "again", for a checkout.
      install: the package of another version beside an installed wheel; empty to reinstall the
        wheel itself.
      found: the version of that package that is installed.
    """
    if (PACKAGE.parent / "setup.py").exists():
        accepted = _accepted(install) if found else ""
        if accepted and not _is_among(found, accepted):
            # `develop` would refuse this one, as bazel/pybuild/machine/preflight.py does.
            return (
                f"Use an environment with {install}{accepted}, or try to build for this one:  "
                "TORCH_XLA_LITE_ANY_VERSION=1 python setup.py develop"
            )
        verb = {"": "Build it", "again": "Build it again"}.get(how, f"Rebuild it {how}")
        return f"{verb}:  python setup.py develop"
    if install:
        return (
            f"Install a wheel that was built for this {install}, or build one in its sources:  "
            "python setup.py bdist_wheel"
        )
    return f"Reinstall it:  python -m pip install --force-reinstall --no-deps {_wheels()}"


def _accepted(package: str) -> str:
    """The versions that a build takes, such as >=2.13,<2.16, by the checkout's pyproject.toml;
    empty if it does not say."""
    file = PACKAGE.resolve().parent / "pyproject.toml"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    found = re.search(rf'"{package}(>=[^"]*)"', text)
    return found[1] if found else ""


def _is_among(version: str, accepted: str) -> bool:
    """Whether a version is in a range of minor versions: first ones inclusive, last exclusive."""
    first, end = (tuple(map(int, part.split("."))) for part in re.findall(r"[\d.]+", accepted))
    number = tuple(int(part) for part in version.split(".")[:2])
    return first <= number < end


def _wheels() -> str:
    """The wheels to reinstall: this one, and the library wheel if this one requires it."""
    found = distribution()
    required = found.requires or [] if found else []
    halves = [name for name in required if name.startswith("torch_xla_lite_lib")]
    return " ".join([found.name if found else "torch_xla_lite", *halves])


def distribution() -> Distribution | None:
    """The installed package; None if it is not installed."""
    # The complete wheel or the Python-only wheel; an editable install is listed in another folder.
    for folders in ([str(PACKAGE.parent)], sys.path):
        for name in ("torch_xla_lite", "torch_xla_lite_python"):
            if found := installed(name, folders):
                return found
    return None


def installed(name: str, folders: list[str]) -> Distribution | None:
    """A distribution that is installed in one of some folders."""
    import importlib.metadata  # slow; only needed for errors and by the commands

    return next(iter(importlib.metadata.distributions(name=name, path=folders)), None)
