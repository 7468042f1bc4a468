"""Isolated builds: the environment that asked for one has the torch that is to be built against.

A build front end runs the hooks in an environment of its own, with nothing but what pyproject.toml
asks for. As that is not torch, none is downloaded; the one that is there has to be found.

    pip            hides packages by PYTHONPATH; packages.search_path() sees past that
    python -m build  makes an environment with venv, which notes the interpreter that made it
    uv, virtualenv   make one that tells nothing; the message says what to do
"""

import os
import subprocess
import sys
from pathlib import Path

from bazel.pybuild import metadata, packages, wheel
from bazel.pybuild.errors import BuildError
from bazel.pybuild.options import Content


def hides_torch() -> bool:
    """Whether this interpreter sees no torch, as in an isolated build."""
    return "torch" not in packages.installed(["torch"], packages.search_path())


def cannot_see_torch() -> BuildError:
    """The error where torch cannot be found."""
    return BuildError(
        f"There is no torch for {sys.executable}.\n"
        "If this is an isolated build, it cannot see the torch of the environment that it is for.",
        "Build in that environment, where torch and jax are installed, by adding the option:  "
        "--no-build-isolation  (python -m build: --no-isolation)",
    )


def build_outside(root: Path, content: Content, folder: Path) -> str:
    """Builds a wheel with the interpreter that made this environment, and returns its name.

    Raises:
      BuildError: it is not known, or sees no torch either.
    """
    python = maker(Path(sys.prefix))
    if python is None or not _has_torch(python):
        raise cannot_see_torch()
    print(f"torch_xla_lite: this is an isolated build; it uses the torch of {python}", flush=True)
    # What the front end has set for its own environment is not for that interpreter.
    environ = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    }
    command = [str(python), "-m", "bazel.pybuild.wheel", str(folder.resolve())]
    process = subprocess.run(command, cwd=root, env=environ, check=False)
    if process.returncode != 0:
        sys.exit(process.returncode)
    return wheel.name(metadata.for_content(metadata.read(root), content), content)


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


def _has_torch(python: Path) -> bool:
    script = "import importlib.util as u; raise SystemExit(u.find_spec('torch') is None)"
    return subprocess.run([python, "-I", "-c", script], check=False).returncode == 0
