"""Where the caches are.

xdg.py is a link to the file with which the package finds them, too; a wheel has no other file of
the build.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from bazel.pybuild.cache import xdg
from bazel.pybuild.errors import BuildError
from bazel.pybuild.options import Options


def home(environ: Mapping[str, str]) -> Path:
    """The folder of all caches of this project."""
    try:
        return xdg.home(environ)
    except RuntimeError:
        raise BuildError(
            f"User {os.getuid()} has no home folder, and HOME is not set.",
            "Name a folder that you may write to:  export HOME=...",
        ) from None


def disk_cache(options: Options, environ: Mapping[str, str]) -> Path | None:
    """The folder of Bazel's disk cache; None without one."""
    flag = "--disk_cache="
    named = [option for option in options.build_options if option.startswith(flag)]
    if not named:
        return home(environ) / "bazel"
    folder = named[-1].removeprefix(flag)
    return Path(folder) if folder else None
