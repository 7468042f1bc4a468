"""Files that an update would overwrite although git does not hold them.

git itself stops at untracked files but takes ignored ones for worthless: it overwrites them
without a word. It also believes what it was told by `update-index --assume-unchanged` and
`--skip-worktree`.
"""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from scripts.repos import git


def find(path: Path, old: str, new: str, ignore_case: bool = False) -> tuple[str, ...]:
    """Paths in a checkout of `old` whose content no commit holds and that `new` has its own for.

    Args:
      path: the checkout.
      old: its commit.
      new: the commit that it would be moved to.
      ignore_case: whether names that differ in case alone are one file.
    """
    listed = git.ask(path, "diff-tree", "-r", "-z", "--no-renames", "--name-status", old, new)
    words = listed.split("\0")[:-1]
    added, changed = [], set()
    for kind, name in zip(words[::2], words[1::2], strict=True):
        if kind == "A":
            added.append(name)
        else:
            changed.add(name)
    found = _in_replaced_submodules(path, old, new)
    found += _not_known(path, added, changed, ignore_case)
    if changed:
        found += [f"{name} (hidden from git by a flag)" for name in _hidden(path, changed)]
    return tuple(dict.fromkeys(found))


def _in_replaced_submodules(path: Path, old: str, new: str) -> list[str]:
    """Submodules that become something else and whose folders are not empty.

    git would remove such a folder with everything in it: ignored and untracked files, and a .git
    folder with branches and stashes that are nowhere else.
    """
    listed = git.ask(path, "diff-tree", "-r", "-z", "--no-renames", old, new).split("\0")[:-1]
    gone, removed = [], []
    for about, name in zip(listed[::2], listed[1::2], strict=True):
        old_mode, new_mode = about[1:].split()[:2]
        if old_mode == "160000" and new_mode not in ("160000", "000000"):
            gone.append(name)
        elif old_mode == "160000" and new_mode == "000000":
            removed.append(name)
    names = set(listed[1::2])
    gone += [name for name in removed if any(other.startswith(f"{name}/") for other in names)]
    return [
        f"{name} (a submodule whose folder is not empty)" for name in gone if _holds(path / name)
    ]


def _holds(folder: Path) -> bool:
    """Whether there is a file, a link or a repository in a folder, at any depth."""
    return any(
        files or any(os.path.islink(os.path.join(top, name)) for name in folders)
        for top, folders, files in os.walk(folder)
    )


def _not_known(path: Path, added: Iterable[str], known: set[str], ignore_case: bool) -> list[str]:
    """What exists at the paths of new files, or where their folders would be."""
    folded = {name.casefold() for name in known} if ignore_case else set()
    kinds: dict[str, int | None] = {}
    found = []
    for name in added:
        hindrance = _hindrance(path, name, kinds)
        if hindrance is None or hindrance in known or hindrance.casefold() in folded:
            continue
        if stat.S_ISDIR(kinds[hindrance] or 0):
            found += _unknown_below(path, hindrance)
        else:
            found.append(hindrance)
    return found


def _hindrance(path: Path, name: str, kinds: dict[str, int | None]) -> str | None:
    """The path itself or the first of its folders that exists and is not just a folder to it."""
    position = name.find("/")
    while position >= 0:
        folder = name[:position]
        kind = _kind(path, folder, kinds)
        if kind is None:
            return None
        if not stat.S_ISDIR(kind):
            return folder
        position = name.find("/", position + 1)
    return name if _kind(path, name, kinds) is not None else None


def _kind(path: Path, name: str, kinds: dict[str, int | None]) -> int | None:
    """The file's mode; None when there is none. Links are not followed."""
    if name not in kinds:
        try:
            kinds[name] = os.lstat(path / name).st_mode
        except OSError:
            kinds[name] = None
    return kinds[name]


def _unknown_below(path: Path, folder: str) -> list[str]:
    """Untracked and ignored files in a folder that gives its place to a file or a submodule."""
    listed = git.ask(path, "--literal-pathspecs", "ls-files", "--others", "-z", "--", folder)
    return [name for name in listed.split("\0") if name]


def _hidden(path: Path, changed: set[str]) -> list[str]:
    """Files that git was told not to look at, that are there, and that would be replaced."""
    found = []
    for entry in git.ask(path, "ls-files", "-v", "-z").split("\0"):
        flag, _, name = entry.partition(" ")
        hidden = flag.islower() or flag == "S"
        if hidden and name in changed and os.path.lexists(path / name):
            found.append(name)
    return found
