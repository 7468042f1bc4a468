"""Removes what a build made and keeps what it downloaded.

Bazel's outputs, the shared objects in the package and the folders build/ and dist/ go. The
repositories that Bazel has fetched, the disk cache, .bazelrc.generated and the editable install
stay: the next `develop` needs no network. A build that is running is waited for.
"""

import errno
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from bazel.pybuild import lock
from bazel.pybuild.errors import BuildError
from bazel.pybuild.install import outputs
from bazel.pybuild.invocation import invoke
from bazel.pybuild.options import Options


def clean(root: Path, options: Options, environ: Mapping[str, str]) -> list[str]:
    """Cleans a tree and returns the paths that were removed, relative to it.

    Raises:
      BuildError: Bazel failed; what is not Bazel's is removed nevertheless.
    """
    command = _bazel_command(options, environ)
    with lock.alone(root):
        removed = outputs.remove(root)
        code = subprocess.run(command, cwd=root, check=False).returncode if command else 0
        for folder in _folders(root):
            _remove(root / folder)
            removed.append(folder)
    if code != 0:
        raise BuildError(
            f"Bazel could not remove its outputs (exit code {code}).",
            f"Run it by hand:  {shlex.join(command)}",
        )
    return [*removed, "outputs of Bazel"] if command else removed


def plan(root: Path, options: Options, environ: Mapping[str, str]) -> list[list[str]]:
    """Commands that do the same as `clean`."""
    removed = [path for path in outputs.recorded(root) if (root / path).exists()]
    removed += _folders(root)
    commands = [["rm", "-r", *removed]] if removed else []
    bazel = _bazel_command(options, environ)
    return [*commands, bazel] if bazel else commands


def _folders(root: Path) -> list[str]:
    # The one with the lock last: when it is gone, another build may begin.
    folders = ("dist", "torch_xla_lite.egg-info", "build")
    return [folder for folder in folders if (root / folder).exists()]


def _remove(folder: Path) -> None:
    own_lock = folder / lock.FILE.name
    if folder.is_symlink():
        # Of what it leads to, nothing is known but this.
        own_lock.unlink(missing_ok=True)
        folder.unlink()
        return
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry != own_lock:
            entry.unlink()
    own_lock.unlink(missing_ok=True)
    try:
        folder.rmdir()
    except OSError as error:
        # Another build has begun in it.
        if error.errno != errno.ENOTEMPTY:
            raise


def _bazel_command(options: Options, environ: Mapping[str, str]) -> list[str]:
    bazel = invoke.client(options, environ)
    return [*bazel, "clean", "--ui_event_filters=-info"] if bazel else []
