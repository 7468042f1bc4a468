"""Locks a tree, so that one command at a time writes to it: a build, a wheel or `clean`.

    with lock.exclusive(root):
        ...         # the same process may take the lock again

The lock is on a file below build/, which `clean` removes last. A waiter that held a deleted lock
file opens the new one.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from bazel.pybuild.errors import BuildError
from bazel.pybuild.variables import PREFIX

FILE = Path("build") / "lock"

_held: set[Path] = set()


@contextmanager
def exclusive(root: Path, *, wait: bool = True) -> Iterator[None]:
    """Waits for the lock of a tree, and holds it until the end of the block.

    Raises:
      BuildError: another process holds the lock, and `wait` is false.
    """
    if root in _held:
        yield
        return
    with _acquire(root / FILE, wait):
        _held.add(root)
        try:
            yield
        finally:
            _held.discard(root)


def _acquire(path: Path, wait: bool) -> IO[str]:
    while True:
        file = _open(path)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                raise BuildError(
                    "Another command works in this tree, and --noblock_for_lock forbids waiting.",
                    f"To wait, remove the option from {PREFIX}BAZEL_STARTUP_OPTIONS.",
                ) from None
            print("torch_xla_lite: waiting for another command in this tree", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        try:
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return file
        except FileNotFoundError:
            pass
        file.close()


def _open(path: Path) -> IO[str]:
    while True:
        path.parent.mkdir(exist_ok=True)
        try:
            return path.open("w")
        except FileNotFoundError:
            # `clean` has removed the folder meanwhile.
            continue
