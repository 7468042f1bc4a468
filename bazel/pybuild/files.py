"""Writes files atomically, and removes files and folders without following links.

replace(root / "build" / "report.json", text)
is_inside(root / "torch_xla_lite/lib/x.so", root)     # False where lib is a link to elsewhere
remove(root / "dist")
is_full(root)
"""

import os
from contextlib import suppress
from pathlib import Path

_FULL_BELOW = 1 << 20


def replace(file: Path, content: str | bytes, mode: int | None = None) -> None:
    """Writes a file atomically: a reader gets the old or the new content; after an error, the old.

    Args:
      file: to write; its folder is made where it is missing.
      content: of the file.
      mode: its permissions; None for those of the user's umask.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    # The process number keeps two commands apart that write the same file at once.
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        # Private until it has the mode that it asks for: the content may be a secret.
        temporary.touch(0o666 if mode is None else 0o600)
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(file)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        # The error of a full disk does not name a file.
        raise OSError(error.errno, error.strerror, str(file)) from error


def is_inside(path: Path, root: Path) -> bool:
    """Whether `path` is inside `root`, after links and `..` in its folder are resolved."""
    place = Path(os.path.normpath(path))
    return (place.parent.resolve() / place.name).is_relative_to(root.resolve())


def remove(path: Path) -> None:
    """Removes a file, a folder with its content, or a link without its target."""
    if path.is_dir() and not path.is_symlink():
        import shutil

        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def is_full(folder: Path) -> bool:
    """Whether the disk of a folder has no space left."""
    with suppress(OSError):
        space = os.statvfs(folder)
        return space.f_bavail * space.f_frsize < _FULL_BELOW
    return False
