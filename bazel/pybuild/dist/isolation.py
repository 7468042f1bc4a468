"""Finds the installed torch from inside an isolated build.

A build front end runs the hooks in a temporary environment that contains only what pyproject.toml
requires. That is not torch, because it would be downloaded for each build. The build uses the torch
of the environment that the front end was called in:

    pip              hides that environment by PYTHONPATH; packages.search_path() finds it
    python -m build  makes the temporary one with venv, which records the interpreter that it used
    uv, virtualenv   record nothing: the active environment's interpreter is the next on PATH, and
                     uv also uses .venv when it is not active

pybind11 is small. The hooks require it if that environment does not have it.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import find_bazel, packages


def hides_torch() -> bool:
    """Whether this interpreter sees no torch, as in an isolated build."""
    return "torch" not in packages.installed(["torch"], packages.search_path())


def missing_headers(root: Path) -> list[str]:
    """What the front end has to install: pybind11, unless the wanted version is installed."""
    folders = packages.search_path()
    if hides_torch():
        python = outside(root)
        if python is None:
            # build_outside reports this.
            return []
        folders = packages.own_folders(python)
    pin = packages.wanted(root)["pybind11"]
    found = packages.installed(["pybind11"], folders).get("pybind11")
    there = found is not None and packages.same_release(found.version, pin)
    return [] if there else [f"pybind11=={pin}"]


def cannot_see_torch() -> BuildError:
    """The error for a build that finds no torch."""
    return BuildError(
        f"There is no torch for {sys.executable}.\n"
        "If this is an isolated build, it cannot see the torch of the environment that it is for.",
        "Activate that environment, where torch and jax are installed, or build in it by adding the"
        " option:  --no-build-isolation  (python -m build: --no-isolation)",
    )


def build_outside(root: Path, folder: Path) -> str:
    """Builds a wheel with the interpreter that `outside` finds, and returns the file's name.

    Raises:
      BuildError: it finds none.
    """
    python = outside(root)
    if python is None:
        raise cannot_see_torch()
    print(f"torch_xla_lite: this is an isolated build; it uses the torch of {python}", flush=True)
    # That interpreter needs none of the temporary environment's settings, only the packages that
    # the hooks required.
    environ = {k: v for k, v in os.environ.items() if k not in ("PYTHONHOME", "VIRTUAL_ENV")}
    environ["PYTHONPATH"] = f"{root}{os.pathsep}{sysconfig.get_path('purelib')}"
    # An empty folder, because only that interpreter knows the name of the wheel.
    with tempfile.TemporaryDirectory(dir=folder) as empty:
        command = [str(python), "-m", "bazel.pybuild.wheel", str(Path(empty).resolve())]
        process = subprocess.run(command, cwd=root, env=environ, check=False)
        if process.returncode != 0:
            sys.exit(process.returncode)
        for made in list(Path(empty).iterdir()):
            shutil.move(made, folder / made.name)
            if made.suffix == ".whl":
                name = made.name
    return name


def outside(root: Path) -> Path | None:
    """The interpreter of the environment that an isolated build was called in, if it has torch.

    Args:
      root: of the tree.
    """
    made_by = maker(Path(sys.prefix))
    candidates = [made_by] if made_by else [_on_path(), root / ".venv" / "bin" / _name()]
    return next((python for python in candidates if python and _sees_torch(python)), None)


def _on_path() -> Path | None:
    """The first interpreter of this version on PATH that is not in this environment."""
    own = Path(sys.prefix).resolve()
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    others = [folder for folder in folders if not Path(folder).resolve().is_relative_to(own)]
    return find_bazel.which(_name(), os.pathsep.join(others))


def _name() -> str:
    # With the version, because a wheel is for one version.
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def _sees_torch(python: Path) -> bool:
    try:
        folders = packages.own_folders(python)
    except BuildError:
        return False
    return "torch" in packages.installed(["torch"], folders)


def maker(environment: Path) -> Path | None:
    """The interpreter that a virtual environment was made with, if it records that."""
    try:
        lines = (environment / "pyvenv.cfg").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, command = line.partition("=")
        # `command = /path/to/python -m venv ...`
        if name.strip() == "command" and " -m venv" in command:
            python = Path(command.partition(" -m venv")[0].strip())
            return python if python.is_file() else None
    return None
