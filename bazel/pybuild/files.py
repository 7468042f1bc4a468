"""Writes and removes files of the tree and of the environment.

replace(root / "build" / "report.json", text)
is_inside(root / "torch_xla_lite/lib/x.so", root)     # False where lib is a link to elsewhere
remove(root / "dist")
"""

import os
from pathlib import Path


def replace(file: Path, content: str | bytes, mode: int | None = None) -> None:
    """Writes a file whole: others see the old content or the new one, and after an error the old.

    Args:
      file: to write; its folder is made where it is missing.
      content: of the file.
      mode: its permissions; None for the usual ones.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    # With the process in its name: two commands may write the same file at once.
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(file)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        # The error of a full disk does not name a file.
        raise OSError(error.errno, error.strerror, str(file)) from error


def is_inside(path: Path, root: Path) -> bool:
    """Whether to change `path` changes what is in `root`, however links and `..` lead."""
    place = Path(os.path.normpath(path))
    return (place.parent.resolve() / place.name).is_relative_to(root.resolve())


def remove(path: Path) -> None:
    """Removes a file, a folder with its content, or a link, but never what a link leads to."""
    if path.is_dir() and not path.is_symlink():
        import shutil

        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
