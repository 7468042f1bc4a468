"""Checks isolated builds, in which a front end runs the hooks in a separate environment.

pyproject.toml does not require torch, so that it is not downloaded. The build uses the torch of the
environment that the wheel is for: pip hides its packages, and packages.search_path() finds them.
`python -m build` and uv use another interpreter, which cannot find them; the error names the option
that switches isolation off. pybind11 is small, so the front end may install it.
"""

import sys
from pathlib import Path

from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import packages


def missing_headers(root: Path) -> list[str]:
    """The packages that a front end must install: pybind11, unless the wanted version is there."""
    if not _sees_torch():
        # `check` will end this build, so nothing needs to be downloaded.
        return []
    pin = packages.wanted(root)["pybind11"]
    found = packages.installed(["pybind11"], packages.search_path()).get("pybind11")
    there = found is not None and packages.same_release(found.version, pin)
    return [] if there else [f"pybind11=={pin}"]


def check() -> None:
    """Raises BuildError if this interpreter finds no torch."""
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
