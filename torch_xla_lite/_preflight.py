"""What must hold before the compiled part of the package is loaded, in the order of checking.

    _preflight.check()                      # variables, Python, torch, jaxlib and jax against
    _build_info _XLAC = _preflight.load_extension()     # the compiled module

The extension calls torch's C++ functions by their mangled names. With another torch the dynamic
loader would fail with `undefined symbol: _ZN3c10...`, or, worse, not fail. So the versions it was
built for, which the build writes into _build_info.py, are compared first, and every error says in
its last line which command mends it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from . import _variables

# As it was found: where links stand for the sources, as in Bazel's tests, what is built is beside
# the links.
PACKAGE = Path(__file__).absolute().parent


def check() -> None:
    """Raises ImportError, or ValueError for a variable, when the package cannot work here."""
    _variables.check(os.environ)
    info = build_info()
    check_python(info.PYTHON_VERSION)
    check_version("torch", built_for=info.TORCH_VERSION)
    # jaxlib before jax: jax refuses to be imported beside a jaxlib that does not suit it, in words
    # of its own.
    check_version("jaxlib", built_for=info.JAXLIB_VERSION)
    # Each jax is released with a jaxlib of the same number, and the lowerings are written for that
    # one.
    check_version("jax", built_for=info.JAXLIB_VERSION)


def load_extension() -> ModuleType:
    """The compiled module. Raises ImportError when it is missing or does not load."""
    name = f"{__package__}._XLAC"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ImportError(
            f"torch_xla_lite's compiled extension is not in {PACKAGE}.\n{build_it()}"
        ) from None
    except ImportError as error:
        # The loader's own words, a missing symbol or library, tell a maintainer something; the
        # command helps the user.
        raise ImportError(
            f"torch_xla_lite's compiled extension does not load here: {error}\n{build_it('again')}"
        ) from error


def build_info() -> ModuleType:
    """What the build recorded. Raises ImportError when nothing was built."""
    name = f"{__package__}._build_info"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ImportError(
            f"torch_xla_lite in {PACKAGE} has not been built.\n{build_it()}"
        ) from None


def check_python(built_for: str) -> None:
    """Raises ImportError when this is another Python than the one that was built for."""
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
    """Raises ImportError when a package is missing or of another version.

    Args:
      package: as imported.
      built_for: its version then.
      installed: what tells its version now; None to import it and ask.
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
            f"{build_it(f'for this {package}', install=f'{package}=={wanted}')}"
        )


def _version_of_module(package: str) -> str:
    # jaxlib keeps its version in a module of its own; asking there does not load XLA.
    module = importlib.import_module("jaxlib.version" if package == "jaxlib" else package)
    return module.__version__


def _public(version: str) -> str:
    """`2.13.0` of `2.13.0+cpu`: all builds of one release share its C++ interface."""
    return version.partition("+")[0]


def build_it(how: str = "", install: str = "") -> str:
    """The last line of an error: the command to run, in a checkout or with an installed wheel.

    Args:
      how: such as "again", for a checkout.
      install: the requirement that an installed wheel lacks; without one it is the wheel itself.
    """
    if (PACKAGE.parent / "setup.py").exists():
        verb = {"": "Build it", "again": "Build it again"}.get(how, f"Rebuild it {how}")
        return f"{verb}:  python setup.py develop"
    if install:
        return f"Install the version that it was built for:  python -m pip install '{install}'"
    return f"Install it anew:  python -m pip install --force-reinstall --no-deps {_wheels()}"


def _wheels() -> str:
    """What to install anew: the libraries have a wheel of their own where this one requires it."""
    import importlib.metadata  # only a mistake pays for this import

    try:
        required = importlib.metadata.requires("torch_xla_lite") or []
    except importlib.metadata.PackageNotFoundError:
        required = []
    halves = [name for name in required if name.startswith("torch_xla_lite_lib")]
    return " ".join(["torch_xla_lite", *halves])
