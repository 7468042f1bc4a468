"""Isolated builds, in which a front end runs the hooks in an environment of its own.

pyproject.toml does not ask for torch, so none is downloaded, and the build needs the one of the
environment that the wheel is for. pip hides that environment's packages, and packages.search_path()
finds them again. `python -m build` and uv use another interpreter, which knows nothing of it: they
get an error that names their option. pybind11 is small: front ends install it where it is missing.
"""

import sys
from pathlib import Path

from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import packages


def missing_headers(root: Path) -> list[str]:
    """What a front end has to install for the build: pybind11, unless the wanted one is there."""
    if not _sees_torch():
        # `check` ends this build, without a download before.
        return []
    pin = packages.wanted(root)["pybind11"]
    found = packages.installed(["pybind11"], packages.search_path()).get("pybind11")
    there = found is not None and packages.same_release(found.version, pin)
    return [] if there else [f"pybind11=={pin}"]


def check() -> None:
    """Raises BuildError where this interpreter sees no torch."""
    if not _sees_torch():
        raise BuildError(
            f"There is no torch for {sys.executable}.\n"
            "An isolated build cannot see the torch of the environment that it is for.",
            "In an environment that has torch and jax, run one of:\n"
            "  pip install --no-build-isolation .\n"
            "  uv pip install --no-build-isolation .\n"
            "  python -m build --wheel --no-isolation",
        )


def _sees_torch() -> bool:
    return "torch" in packages.installed(["torch"], packages.search_path())
