"""Removes the outputs of builds and keeps downloads.

It removes Bazel's outputs, the shared objects in the package and the folders build/ and dist/. The
repositories that Bazel fetched, the disk cache, .bazelrc.generated and the editable install stay,
so the next `develop` needs no network. It waits for a running build. It removes links and not their
targets, and nothing outside the tree.
"""

import errno
import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from bazel.pybuild import configure, files, lock
from bazel.pybuild.call import client, process
from bazel.pybuild.errors import BuildError
from bazel.pybuild.install import outputs
from bazel.pybuild.options import Options
from bazel.pybuild.variables import without_secrets


def clean(root: Path, options: Options, environ: Mapping[str, str]) -> list[str]:
    """Cleans a tree and returns the removed paths.

    Raises:
      BuildError: Bazel failed; the other files were removed.
    """
    command = _bazel_command(root, options, environ)
    removed: list[str] = []
    code = 0
    with lock.exclusive(root, wait=options.waits):
        if command:
            with process.child(command, root, without_secrets(environ)) as bazel:
                pass
            code = bazel.returncode
            removed.append("outputs of Bazel")
        configure.remove_old_links(root)
        for path in _paths(root):
            _remove(root / path)
            removed.append(path)
    if code != 0:
        raise BuildError(
            f"Bazel could not remove its outputs (exit code {code}).",
            f"Run it by hand:  {shlex.join(command)}",
        )
    return removed


def plan(root: Path, options: Options, environ: Mapping[str, str]) -> list[list[str]]:
    """Commands with the same effect as `clean`, in the same order."""
    command, paths = _bazel_command(root, options, environ), _paths(root)
    return [*filter(None, [command]), *([["rm", "-r", *paths]] if paths else [])]


def _bazel_command(root: Path, options: Options, environ: Mapping[str, str]) -> list[str]:
    bazel = client.client(options, environ)
    if not bazel:
        return []
    return [*client.without_settings(root, bazel), "clean", "--ui_event_filters=-info"]


def _paths(root: Path) -> list[str]:
    """The paths to remove in addition to Bazel's outputs, in this order."""
    built = outputs.installed(root)
    # The folder with the lock is last: without it, another build may begin.
    folders = ("dist", "torch_xla_lite.egg-info", str(lock.FILE.parent))
    return [*built, *(folder for folder in folders if os.path.lexists(root / folder))]


def _remove(path: Path) -> None:
    own_lock = path / lock.FILE.name
    if path.is_symlink() or not own_lock.exists():
        files.remove(path)
        return
    for entry in path.iterdir():
        if entry != own_lock:
            files.remove(entry)
    own_lock.unlink(missing_ok=True)
    try:
        path.rmdir()
    except OSError as error:
        # Another build has begun in it.
        if error.errno != errno.ENOTEMPTY:
            raise
