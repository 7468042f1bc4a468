"""Where a repository keeps its git folder. Only files are read, git is not called."""

import os
from pathlib import Path


def is_repository(path: Path) -> bool:
    """Whether a folder is the top of a checkout, or a bare repository."""
    # os.path, because pathlib raises where a folder may not be read.
    exists, is_dir = os.path.exists, os.path.isdir
    if exists(path / ".git"):
        return True
    return os.path.isfile(path / "HEAD") and is_dir(path / "objects") and is_dir(path / "refs")


def git_dir(path: Path) -> Path:
    """Where HEAD and index are: of a checkout, a worktree, a submodule or a bare repository."""
    inside = path / ".git"
    if not inside.exists():
        return path
    return inside if inside.is_dir() else path / _line(inside).removeprefix("gitdir: ")


def common_dir(git_dir: Path) -> Path:
    """Where refs, objects and configuration are: of a worktree, in another folder."""
    common = git_dir / "commondir"
    return git_dir / _line(common) if common.is_file() else git_dir


def is_inside_another(path: Path) -> bool:
    """Whether a folder above is a checkout, of which this one may be a submodule."""
    return any(os.path.exists(above / ".git") for above in path.parents)


def _line(file: Path) -> str:
    """The content of a file without its last line break; paths may hold others, and any bytes."""
    return os.fsdecode(file.read_bytes()).rstrip("\n")
