"""torch-xla-lite cache: what builds keep on disk, and how to be rid of it.

jax's compilation cache is shown where one is configured; it is jax's, and never removed here.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class Cache(NamedTuple):
    """A folder that can be made again.

    Attributes:
      what: it holds.
      folder: where it is.
      is_ours: whether `--clear` removes it.
    """

    what: str
    folder: Path
    is_ours: bool


def main(*, clear: bool) -> int:
    """Prints the caches and their sizes; removes ours on request."""
    try:
        found = caches(os.environ)
    except RuntimeError as error:
        print(f"{error}\nName the folder of caches:  export XDG_CACHE_HOME=...", file=sys.stderr)
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
    """The caches there may be."""
    found = [Cache("results of builds", home(environ) / "bazel", True)]
    if named := environ.get("JAX_COMPILATION_CACHE_DIR", ""):
        found.append(Cache("jax's compiled programs", Path(named), False))
    return found


def home(environ: Mapping[str, str]) -> Path:
    """Where this project keeps what can be made again, by the XDG rules, as the build does."""
    named = environ.get("XDG_CACHE_HOME", "")
    base = Path(named) if os.path.isabs(named) else Path.home() / ".cache"
    return base / "torch_xla_lite"


def remove(folder: Path) -> bool:
    """Removes a folder, or only the link if it is one; whether there was something to remove."""
    if folder.is_symlink():
        folder.unlink()
        return True
    if not folder.is_dir():
        return False
    shutil.rmtree(folder)
    return True


def _size(folder: Path) -> int:
    """Bytes in files below a folder, links not followed."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except FileNotFoundError:
                continue  # A build is at work.
    return total
