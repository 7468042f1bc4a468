"""Runs pip for `python setup.py install`.

    command(verbosity=0)
    # [".venv/bin/python", "-m", "pip", "install", "--no-build-isolation", "--no-deps", "."]

pip calls backend.py for the wheel and replaces what is installed.
"""

import importlib.util
import shlex
import sys
from pathlib import Path

from bazel.pybuild.call import process
from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import packages
from bazel.pybuild.options import WheelKind

# The two halves of the whole package.
_HALVES = frozenset({packages.LIBRARY, "torch-xla-lite-python"})


def command(verbosity: int = 0) -> list[str]:
    """The call of pip.

    Args:
      verbosity: -1 for errors and warnings only, 1 for all messages of pip and the build.
    """
    words = [sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps"]
    # The wheel replaces an installed one with the same version.
    words += ["--force-reinstall", "--disable-pip-version-check"]
    if verbosity:
        words.append("--verbose" if verbosity > 0 else "--quiet")
    return [*words, "."]


def install(root: Path, kind: WheelKind, verbosity: int = 0) -> None:
    """Calls pip.

    Args:
      root: of the tree.
      kind: what the wheel holds.
      verbosity: as for `command`.

    Raises:
      BuildError: pip is missing or failed, or would overwrite files of another wheel.
    """
    names = _HALVES if kind is WheelKind.ALL else {"torch-xla-lite"}
    if others := packages.installed(names, packages.search_path()):
        listed = " ".join(sorted(others))
        raise BuildError(
            f"{listed} is installed. pip would install {kind.value} over its files, and "
            "uninstalling either would break the other.",
            f"Uninstall it first:  {sys.executable} -m pip uninstall --yes {listed}",
        )
    if importlib.util.find_spec("pip") is None:
        raise BuildError(
            f"There is no pip for {sys.executable}.",
            f"Install it, then run the command again:  {sys.executable} -m ensurepip",
        )
    words = command(verbosity)
    print(f"torch_xla_lite: pip installs it:  {shlex.join(words)}", flush=True)
    with process.child(words, root) as pip:
        pass
    if pip.returncode != 0:
        raise BuildError(
            f"pip could not install this tree (exit code {pip.returncode}); it says above why.",
            f"Run it by hand:  cd {shlex.quote(str(root))} && {shlex.join(words)}",
        )
