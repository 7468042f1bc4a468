"""Bazel with its startup options, and short questions to it.

client(options, os.environ)                                # ["/usr/bin/bazel", ...]
ask([*client, "info", "output_base"], root, os.environ)    # a CompletedProcess
"""

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from bazel.pybuild.machine import find_bazel
from bazel.pybuild.options import Options
from bazel.pybuild.variables import without_secrets


def client(options: Options, environ: Mapping[str, str]) -> list[str]:
    """Bazel and its startup options; empty if none is installed and the user named none."""
    try:
        bazel = find_bazel.find(options.bazel, environ.get("PATH", os.defpath))
    except find_bazel.NotInstalled:
        return []
    return [str(bazel), *options.startup_options]


def without_settings(root: Path, client: Sequence[str]) -> list[str]:
    """The client, which then reads no rc file of the tree: .bazelrc.generated may be for another
    Bazel, with options that this one rejects.

    The tree's startup options are kept: with other ones, Bazel would restart its server.
    """
    program, *options = client
    startup = startup_options(root / ".bazelrc", root / ".bazelrc.user")
    return [program, "--noworkspace_rc", *startup, *options]


def startup_options(*files: Path) -> list[str]:
    """The options of rc files for Bazel itself."""
    lines = [line for file in files if file.exists() for line in file.read_text().splitlines()]
    startup = [line for line in lines if line.startswith("startup ")]
    return [word for line in startup for word in shlex.split(line, comments=True)[1:]]


def ask(
    command: Sequence[str], root: Path, environ: Mapping[str, str]
) -> "subprocess.CompletedProcess[bytes]":
    """Runs a command that builds nothing; its exit code is not checked."""
    private = without_secrets(environ)
    return subprocess.run(command, cwd=root, env=private, capture_output=True, check=False)


def output_base(root: Path, client: Sequence[str], environ: Mapping[str, str]) -> Path:
    """Bazel's folder for a tree; the empty path if Bazel does not say."""
    return Path(ask([*client, "info", "output_base"], root, environ).stdout.decode().strip())


def remove_bazel_files(root: Path, options: Options, environ: Mapping[str, str]) -> None:
    """Ends Bazel's server for a temporary tree, and removes Bazel's files for it.

    Files in an --output_base that the user chose stay, because another tree may use them. Errors
    are ignored: they cost only memory and disk space.
    """
    import hashlib

    bazel = client(options, environ)
    if bazel:
        # Bazel names the folder of a tree by this hash.
        own = hashlib.md5(str(root).encode(), usedforsecurity=False).hexdigest()
        is_own = output_base(root, bazel, environ).name == own
        ask([*bazel, *(["clean", "--expunge"] if is_own else ["shutdown"])], root, environ)
