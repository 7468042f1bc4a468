"""Removes symbols and debug information from a wheel's shared objects, or writes them beside it.

    stripped = strip(built, folder)                       # path in the wheel -> file
    stripped = strip(built, folder, keep=Path("dist"))    # and dist/libtorch_xla_lite.so.debug ...

Debuggers find a debug file by the name and checksum in the library, or by its build ID. The
libraries in the tree keep their symbols, for profilers.
"""

import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from bazel.pybuild.errors import BuildError

_TOOL = "objcopy"


def strip(built: Mapping[str, Path], folder: Path, keep: Path | None = None) -> dict[str, Path]:
    """Writes copies of shared objects without symbols and debug information.

    Args:
      built: path in the wheel -> file.
      folder: for the new files.
      keep: folder that gets a debug file for each shared object; None for none.

    Returns:
      For each path in the wheel, the file to pack.

    Raises:
      BuildError: the tool is missing or fails.
    """
    files = dict(built)
    shutil.rmtree(folder, ignore_errors=True)
    for path, file in built.items():
        if not path.endswith(".so"):
            continue
        files[path] = folder / path
        files[path].parent.mkdir(parents=True, exist_ok=True)
        options = ["--strip-unneeded"]
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            debug = keep / f"{file.name}.debug"
            debug.unlink(missing_ok=True)
            _run("--only-keep-debug", file, debug)
            # objcopy makes it executable, like the library.
            debug.chmod(0o644)
            options.append(f"--add-gnu-debuglink={debug}")
        _run(*options, file, files[path])
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
