"""Opens folders and files that no other user can have written.

    folder = private_folder.open_folder(Path.home() / ".cache", "torch_xla_lite", "programs")
    file = private_folder.open_file(folder, "entry")    # both are descriptors

What is read there may be run, so its owner decides what this process does. The base is the user's
own choice and may be a link. The folders below it are opened one in the other, without following
links, and are checked when they are open: whoever may write to the base can rename them, and cannot
put a folder of this user in their place.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_ANOTHER = "set another folder for caches:  export XDG_CACHE_HOME=..."


class NotPrivateError(OSError):
    """Another user can write here; the message is one line with the folder and the remedy."""


def open_folder(base: Path, *names: str) -> int:
    """The descriptor of the folder `base/names[0]/names[1]...`, whose absent parts are made.

    Raises:
      NotPrivateError: a folder below the base is a link, is another user's, or others may write to
        it.
      OSError: a folder cannot be made or opened.
    """
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
    path = base
    for name in names:
        parent, path = folder, path / name
        try:
            folder = _open_below(parent, path)
        finally:
            os.close(parent)
    return folder


def open_file(folder: int, name: str) -> int:
    """The descriptor of a file of a private folder, for reading.

    Raises:
      NotPrivateError: another user owns the file or may write to it, or it is no regular file.
      OSError: it cannot be opened; it may be a link.
    """
    # Opening a pipe would wait for its writer.
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode) or _reason(status, Path(name)):
        os.close(file)
        raise NotPrivateError(f"{name} is no file of this user alone")
    return file


def _open_below(parent: int, path: Path) -> int:
    with contextlib.suppress(FileExistsError):
        os.mkdir(path.name, 0o700, dir_fd=parent)
    if stat.S_ISLNK(os.stat(path.name, dir_fd=parent, follow_symlinks=False).st_mode):
        raise NotPrivateError(f"{path} is a link; {_ANOTHER}")
    folder = os.open(path.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    if reason := _reason(os.fstat(folder), path):
        os.close(folder)
        raise NotPrivateError(reason)
    return folder


def _reason(status: os.stat_result, path: Path) -> str:
    """Why other users can decide what is in a file or folder; empty if they cannot."""
    if status.st_uid != os.geteuid():
        return f"{path} belongs to another user ({status.st_uid}); {_ANOTHER}"
    if status.st_mode & _WRITABLE_BY_OTHERS:
        import shlex  # Rarely needed, and most programs do not import it.

        return f"other users may write to {path}; run  chmod go-w {shlex.quote(str(path))}"
    return ""
