"""torch-xla-lite cache: shows what builds and programs keep on disk, and deletes it.

    $ torch-xla-lite cache
    results of builds: 5,204 files, 1.2 GB, used 3 minutes to 9 days ago
      /home/ada/.cache/torch_xla_lite/bazel
    compiled programs: 212 programs, 4.8 MB of 2.1 GB, used 2 hours to 5 days ago
      /home/ada/.cache/torch_xla_lite/programs

If jax's compilation cache is configured, the command lists it too, but never deletes it.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ..startup.caches import COSTS, PROGRAMS_LIMIT, home, programs


class Cache(NamedTuple):
    """A folder whose content can be computed again.

    Attributes:
      what: a description of its content.
      unit: what one of its files is.
      limit: how many bytes it may have; 0 if nothing here enforces a limit.
      folder: its path.
      is_ours: whether `--clear` removes it.
    """

    what: str
    unit: str
    limit: int
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
        print(f"{cache.what}: {_summary(cache)}\n  {cache.folder}")
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
        Cache("results of builds", "file", 0, home(environ) / "bazel", True),
        Cache("compiled programs", "program", PROGRAMS_LIMIT, programs(environ), True),
    ]
    if named := environ.get("JAX_COMPILATION_CACHE_DIR", ""):
        found.append(Cache("jax's compiled programs", "file", 0, Path(named), False))
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


def _summary(cache: Cache) -> str:
    """How many files a cache has, their size, and when they were written or read."""
    files = list(_files(cache.folder))
    if not files:
        return "empty"
    limit = f" of {_bytes(cache.limit)}" if cache.limit else ""
    now = time.time()
    newest, oldest = (_age(now - pick(used for _, used in files)) for pick in (max, min))
    ages = newest if newest == oldest else f"{newest} to {oldest}"
    return (
        f"{_count(len(files), cache.unit)}, {_bytes(sum(size for size, _ in files))}{limit}, "
        f"used {ages} ago"
    )


def _files(folder: Path) -> Iterator[tuple[int, float]]:
    """The bytes of each file below a folder and when it was used; links are not followed."""
    for parent, _, names in os.walk(folder):
        for name in names:
            if name == COSTS:
                continue
            try:
                status = os.lstat(os.path.join(parent, name))
            except FileNotFoundError:
                continue  # A running build has removed it.
            yield status.st_size, status.st_mtime


def _bytes(count: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def _age(seconds: float) -> str:
    """A time in the largest unit of which there is at least one."""
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            return _count(int(seconds // length), unit)
    return "seconds"


def _count(number: int, unit: str) -> str:
    return f"{number:,} {unit}" + ("" if number == 1 else "s")
