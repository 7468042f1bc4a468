"""torch-xla-lite cache: shows what builds and programs keep on disk, and deletes it.

If jax's compilation cache is configured, the command lists it too, but never deletes it.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from .. import _caches


class Cache(NamedTuple):
    """A folder whose content can be computed again.

    Attributes:
      what: a description of its content.
      folder: its path.
      is_ours: whether `--clear` removes it.
    """

    what: str
    folder: Path
    is_ours: bool


def main(*, clear: bool) -> int:
    """Prints the caches and their sizes; with `clear`, removes those of this project."""
    try:
        found = caches(os.environ)
    except RuntimeError as error:
        print(f"{error}\nSet the folder for caches:  export XDG_CACHE_HOME=...", file=sys.stderr)
        return 1
    for cache in found:
        size = f"{_size(cache.folder) / 1e6:.1f} MB" if cache.folder.is_dir() else "empty"
        print(f"{cache.what}: {size}, {cache.folder}")
        try:
            if clear and cache.is_ours and remove(cache.folder):
                print("  removed")
        except OSError as error:
            print(f"It could not be removed: {error}", file=sys.stderr)
            return 1
    return 0


def caches(environ: Mapping[str, str]) -> list[Cache]:
    """The caches, whether they exist or not."""
    found = [
        Cache("results of builds", _caches.home(environ) / "bazel", True),
        Cache("compiled programs", _caches.programs(environ), True),
    ]
    if named := environ.get("JAX_COMPILATION_CACHE_DIR", ""):
        found.append(Cache("jax's compiled programs", Path(named), False))
    return found


def remove(folder: Path) -> bool:
    """Removes a folder, or only the link if it is one. Returns whether it existed."""
    if folder.is_symlink():
        folder.unlink()
        return True
    if not folder.is_dir():
        return False
    shutil.rmtree(folder)
    return True


def _size(folder: Path) -> int:
    """The size of all files below a folder in bytes; links are not followed."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except FileNotFoundError:
                continue  # A running build has removed it.
    return total
