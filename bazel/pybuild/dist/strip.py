"""Removes symbols and debug information from a wheel's shared objects.

    stripped = strip(built, folder)        # path in the wheel -> file

The libraries in the tree keep their symbols, for profilers.
"""

import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from bazel.pybuild.errors import BuildError

_TOOL = "objcopy"


def strip(built: Mapping[str, Path], folder: Path) -> dict[str, Path]:
    """Writes copies of shared objects without symbols and debug information.

    Args:
      built: path in the wheel -> file.
      folder: for the new files.

    Returns:
      For each path in the wheel, the file to pack.

    Raises:
      BuildError: the tool is missing or fails.
    """
    files = dict(built)
    shutil.rmtree(folder, ignore_errors=True)
    for path, file in built.items():
        if path.endswith(".so"):
            files[path] = folder / path
            files[path].parent.mkdir(parents=True, exist_ok=True)
            _run("--strip-unneeded", file, files[path])
    return files


def _run(*arguments: str | Path) -> None:
    command = [_TOOL, *map(str, arguments)]
    try:
        process = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise BuildError(
            f"{_TOOL}, which removes the symbols from a wheel's libraries, is not on PATH.",
            "Install it:  apt-get install binutils",
        ) from None
    if process.returncode != 0:
        raise BuildError(
            f"{_TOOL} failed: {process.stderr.strip()}", f"The command was:  {shlex.join(command)}"
        )
