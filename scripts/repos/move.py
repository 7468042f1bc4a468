"""Moves what is checked out; what git leaves half done when it gives up is taken back.

git looks for hindrances before it writes anything. It can fail all the same: a filter such as
git-lfs is missing, the disk is full, a ref is locked. Then files are written, and HEAD stays.
"""

import contextlib
import os
from pathlib import Path

from scripts.repos import git


def to(path: Path, words: tuple[str, ...], old: str, new: str) -> str:
    """Calls git so that it moves HEAD, index and files.

    Args:
      path: the checkout; at `old`, and no file that differs has local changes.
      words: the call.
      old: its commit.
      new: the commit that it is moved to.

    Returns:
      What a hook complained about after the move; empty when none did.

    Raises:
      git.GitError: it did not move; files and index are as before, as far as that was possible.
    """
    if git.commit(path, "HEAD") != old:
        # Somebody committed while a rebase was prepared.
        raise git.GitError(path, words, git.Result(1, "", "fatal: HEAD has moved meanwhile"))
    result = git.run(path, *words, changing=True)
    if result.code == 0:
        return ""
    if git.commit(path, "HEAD") == new:
        return f"git {words[0]} moved it, but a hook failed: {result.words}"
    _take_back(path, old, new)
    raise git.GitError(path, words, result)


def _take_back(path: Path, old: str, new: str) -> None:
    """Makes files and index that are as in `new` as they are in `old` again; others stay."""
    # Where git has come as far as the index, it goes back by itself; elsewhere this does nothing.
    git.run(path, "read-tree", "-m", "-u", new, old, changing=True)
    added, others = _written(path, old, new)
    for name in added:
        with contextlib.suppress(OSError):
            (path / name).unlink()
            os.removedirs((path / name).parent)
    text = "".join(f"{name}\0" for name in others)
    git.run(path, "checkout-index", "--force", "-z", "--stdin", text=text, changing=True)


def _written(path: Path, old: str, new: str) -> tuple[list[str], list[str]]:
    """Paths that are as in `new`: those that `old` does not have, and the others.

    None where that cannot be told.
    """
    import tempfile

    # Not in the git folder: its disk may be full.
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder, "index")
        read = git.run(path, "read-tree", new, index=index, changing=True)
        git.run(path, "update-index", "-q", "--refresh", index=index, changing=True)
        named = ("diff-files", "--name-only", "-z", "--ignore-submodules")
        compared = git.run(path, *named, index=index)
    if read.code != 0 or compared.code != 0:
        return [], []
    differing = set(compared.out.split("\0"))
    words = ("diff-tree", "-r", "-z", "--no-renames", "--name-status", "--ignore-submodules")
    listed = git.run(path, *words, old, new).out.split("\0")[:-1]
    added, others = [], []
    for kind, name in zip(listed[::2], listed[1::2], strict=True):
        there = os.path.lexists(path / name)
        if kind == "D":
            others += [] if there else [name]
        elif there and name not in differing:
            (added if kind == "A" else others).append(name)
    return added, others
