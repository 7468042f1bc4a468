"""Isolated builds: the environment that asked for one has the torch that is to be built against.

A build front end runs the hooks in an environment of its own, with nothing but what pyproject.toml
asks for. As that is not torch, none is downloaded; the one that is there has to be found.

    pip            hides packages by PYTHONPATH; packages.search_path() sees past that
    python -m build  makes an environment with venv, which notes the interpreter that made it
    uv, virtualenv   make one that tells nothing; where an environment is active, its interpreter
                   is the next on PATH, and one in .venv is uv's without being active

What an environment with torch and jax may lack, and is small, is asked for: pybind11.
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
    """What a front end has to bring: pybind11, unless the wanted one is there."""
    folders = packages.search_path()
    if hides_torch():
        python = outside(root)
        if python is None:
            # The build will say that it cannot be made here.
            return []
        folders = packages.own_folders(python)
    pin = packages.wanted(root)["pybind11"]
    found = packages.installed(["pybind11"], folders).get("pybind11")
    there = found is not None and packages.same_release(found.version, pin)
    return [] if there else [f"pybind11=={pin}"]


def cannot_see_torch() -> BuildError:
    """The error where torch cannot be found."""
    return BuildError(
        f"There is no torch for {sys.executable}.\n"
        "If this is an isolated build, it cannot see the torch of the environment that it is for.",
        "Activate that environment, where torch and jax are installed, or build in it by adding the"
        " option:  --no-build-isolation  (python -m build: --no-isolation)",
    )


def build_outside(root: Path, folder: Path) -> str:
    """Builds a wheel with an interpreter outside of this environment, and returns its name.

    Raises:
      BuildError: none is known that sees torch.
    """
    python = outside(root)
    if python is None:
        raise cannot_see_torch()
    print(f"torch_xla_lite: this is an isolated build; it uses the torch of {python}", flush=True)
    # What the front end has set for its own environment is not for that interpreter, but for what
    # was installed there because we have asked for it.
    environ = {k: v for k, v in os.environ.items() if k not in ("PYTHONHOME", "VIRTUAL_ENV")}
    environ["PYTHONPATH"] = f"{root}{os.pathsep}{sysconfig.get_path('purelib')}"
    # Only that interpreter knows the name of the wheel; the folder may have others already.
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
    """The interpreter that an isolated build is most likely for: one that sees torch.

    Args:
      root: of the tree.
    """
    made_by = maker(Path(sys.prefix))
    candidates = [made_by] if made_by else [_on_path(), root / ".venv" / "bin" / _name()]
    return next((python for python in candidates if python and _sees_torch(python)), None)


def _on_path() -> Path | None:
    """The first interpreter of our version that is not of this environment, as after `activate`."""
    own = Path(sys.prefix).resolve()
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    others = [folder for folder in folders if not Path(folder).resolve().is_relative_to(own)]
    return find_bazel.which(_name(), os.pathsep.join(others))


def _name() -> str:
    # With the version: a wheel for another one is of no use.
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def _sees_torch(python: Path) -> bool:
    try:
        folders = packages.own_folders(python)
    except BuildError:
        return False
    return "torch" in packages.installed(["torch"], folders)


def maker(environment: Path) -> Path | None:
    """The interpreter that made a virtual environment, as far as the environment tells."""
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
