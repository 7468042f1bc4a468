"""Removes what a build made and keeps what it downloaded.

Bazel's outputs, the shared objects in the package and the folders build/ and dist/ go. The
repositories that Bazel has fetched, the disk cache, .bazelrc.generated and the editable install
stay: the next `develop` needs no network.
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from bazel.pybuild import find_bazel, outputs
from bazel.pybuild.errors import BuildError
from bazel.pybuild.options import Options


def forget(root: Path, options: Options, environ: Mapping[str, str]) -> None:
    """Ends Bazel's server for a tree that nobody will build in again, and removes all it has made.

    What fails here is no reason to fail: it would only take memory and disk for some hours.
    """
    command = _bazel_command(options, environ)
    if command:
        subprocess.run([*command, "--expunge"], cwd=root, check=False, capture_output=True)


def clean(root: Path, options: Options, environ: Mapping[str, str]) -> list[str]:
    """Cleans a tree and returns the paths that were removed, relative to it.

    Raises:
      BuildError: Bazel failed; what is not Bazel's is removed nevertheless.
    """
    removed = outputs.remove(root)
    for folder in _folders(root):
        place = root / folder
        if place.is_symlink():
            # Of what it leads to, nothing is known.
            place.unlink()
        else:
            shutil.rmtree(place)
        removed.append(folder)
    command = _bazel_command(options, environ)
    if not command:
        return removed
    process = subprocess.run(command, cwd=root, check=False)
    if process.returncode != 0:
        raise BuildError(
            f"Bazel could not remove its outputs (exit code {process.returncode}).",
            f"Run it by hand:  {shlex.join(command)}",
        )
    return [*removed, "outputs of Bazel"]


def plan(root: Path, options: Options, environ: Mapping[str, str]) -> list[list[str]]:
    """Commands that do the same as `clean`."""
    removed = [path for path in outputs.recorded(root) if (root / path).exists()]
    removed += _folders(root)
    commands = [["rm", "-r", *removed]] if removed else []
    bazel = _bazel_command(options, environ)
    return [*commands, bazel] if bazel else commands


def _folders(root: Path) -> list[str]:
    folders = ("build", "dist", "torch_xla_lite.egg-info")
    return [folder for folder in folders if (root / folder).exists()]


def _bazel_command(options: Options, environ: Mapping[str, str]) -> list[str]:
    """Empty without a Bazel: then there are no outputs of one, or they are no longer ours to
    judge."""
    try:
        bazel = find_bazel.find(options.bazel, environ.get("PATH", os.defpath))
    except BuildError:
        return []
    return [str(bazel.executable), *options.startup_options, "clean", "--ui_event_filters=-info"]
