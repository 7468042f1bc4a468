"""What stands in the way of a checkout that moves from one commit to another.

git stops at untracked files, but overwrites or removes without a word: ignored files; files hidden
by `update-index --assume-unchanged` or `--skip-worktree`; and the whole folder of a submodule that
becomes something else. All of it is looked for here before git is called.
"""

import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from scripts.repos import git, inspect, layout
from scripts.repos.model import LocalWork

_SUBMODULE = "160000"


class _Change(NamedTuple):
    """A path that differs between two commits; an empty mode is none."""

    name: str
    old_mode: str
    new_mode: str
    new_id: str


class Obstacles(NamedTuple):
    """Files whose content would be lost, and submodules that cannot move, with the reason."""

    files: tuple[str, ...] = ()
    submodules: tuple[tuple[str, str], ...] = ()


def changes(path: Path, old: str, new: str) -> list[_Change]:
    """The paths that differ between two commits."""
    listed = git.ask(path, "diff-tree", "-r", "-z", "--raw", "--no-renames", old, new)
    words = listed.split("\0")[:-1]
    found = []
    for about, name in zip(words[::2], words[1::2], strict=True):
        old_mode, new_mode, _, new_id, _ = about[1:].split()
        modes = ["" if mode == "000000" else mode for mode in (old_mode, new_mode)]
        found.append(_Change(name, *modes, new_id))
    return found


def find(
    path: Path,
    old: str,
    new: str,
    local: LocalWork,
    *,
    ignore_case: bool = False,
    emptied: Collection[str] = (),
    undoing: bool = False,
) -> Obstacles:
    """Looks for what is in the way of a checkout that moves from one commit to another.

    Args:
      local: its local work.
      ignore_case: whether names that differ only in case are one file.
      emptied: submodules whose folders will be empty before the move.
      undoing: whether submodules that come back were here before with what is in them now.
    """
    differing = changes(path, old, new)
    search = _Search(path, differing, ignore_case, emptied, undoing)
    found = list(_local(differing, local))
    for change in differing:
        if change.old_mode == _SUBMODULE:
            if change.new_mode != _SUBMODULE and change.name not in emptied:
                found += search.in_submodule(change)
        elif not change.old_mode:
            found += search.at_new_path(change)
    moving = {c.name for c in differing if c.old_mode == c.new_mode == _SUBMODULE}
    submodules = [(name, problem) for name, problem in local.submodules if name in moving]
    submodules = [pair for pair in submodules if pair[1] != inspect.UNTRACKED]
    for name in sorted(moving - {name for name, _ in local.submodules}):
        words = _in_progress(path / name)
        submodules += [(name, words)] if words else []
    files = dict.fromkeys((*found, *_hidden(path, differing)))
    return Obstacles(tuple(files), tuple(submodules))


def _in_progress(place: Path) -> str:
    """What is in progress or locked in a submodule, in words."""
    return inspect.unfinished(layout.git_dir(place)).words() if (place / ".git").exists() else ""


def _local(differing: list[_Change], local: LocalWork) -> Iterator[str]:
    """Local changes at the paths, above or below them."""
    names = {change.name for change in differing}
    above = {folder for name in names for folder in _folders(name)}
    for name in local.changed:
        if name in names or name in above or not names.isdisjoint(_folders(name)):
            yield name


def _folders(name: str) -> list[str]:
    """The folders that a path is in, the outermost first."""
    parts = name.split("/")
    return ["/".join(parts[:i]) for i in range(1, len(parts))]


class _Search:
    """Looks for files on disk at paths that a commit brings."""

    def __init__(
        self,
        path: Path,
        differing: list[_Change],
        ignore_case: bool,
        emptied: Collection[str],
        undoing: bool,
    ):
        self.path, self.emptied, self.undoing = path, emptied, undoing
        self.old_names = {change.name for change in differing if change.old_mode}
        self.new_names = [change.name for change in differing if change.new_mode]
        self.folded = {name.casefold() for name in self.old_names} if ignore_case else set()
        self.new_folders = {folder for name in self.new_names for folder in _folders(name)}
        self.modes: dict[str, int] = {}

    def at_new_path(self, change: _Change) -> list[str]:
        """What exists at a new path, or instead of one of its folders."""
        for name in (*_folders(change.name), change.name):
            mode = self._mode(name)
            if not mode:
                return []
            if not stat.S_ISDIR(mode):
                return [] if self._is_replaced(name) else [name]
            if name != change.name and self._is_repository(name):
                return [name]
        if change.new_mode == _SUBMODULE and self._is_repository(change.name):
            # git leaves the folder alone; the submodule would follow.
            head = git.commit(self.path / change.name, "HEAD")
            return [] if self.undoing or head == change.new_id else [change.name]
        return self._unknown_below(change.name)

    def _is_repository(self, name: str) -> bool:
        """Whether a folder is another repository, and stays one."""
        return name not in self.emptied and (self.path / name / ".git").exists()

    def in_submodule(self, change: _Change) -> list[str]:
        """The submodule, when something else takes its place and its folder is not empty."""
        if not change.new_mode and change.name not in self.new_folders:
            return []
        holds = not self._is_replaced_file(change.name) and self._unknown_below(change.name)
        return [f"{change.name} (a submodule whose folder is not empty)"] if holds else []

    def _is_replaced_file(self, name: str) -> bool:
        return not stat.S_ISDIR(self._mode(name) or stat.S_IFDIR)

    def _is_replaced(self, name: str) -> bool:
        """Whether a file or link is one of the old commit's, which git replaces."""
        return name in self.old_names or name.casefold() in self.folded

    def _mode(self, name: str) -> int:
        """The file's mode; 0 when there is none. Links are not followed."""
        if name not in self.modes:
            try:
                self.modes[name] = os.lstat(self.path / name).st_mode
            except OSError:
                self.modes[name] = 0
        return self.modes[name]

    def _unknown_below(self, folder: str) -> list[str]:
        """Files in a folder that are not the old commit's, .git files and folders included."""
        found = []
        for top, folders, files in os.walk(self.path / folder):
            inside = os.path.relpath(top, self.path)
            links = [name for name in folders if os.path.islink(os.path.join(top, name))]
            if ".git" in folders:
                found.append(f"{inside}/.git")
                folders.clear()
            names = (f"{inside}/{name}" for name in (*files, *links))
            found += [name for name in names if name not in self.old_names]
        return found


def _hidden(path: Path, differing: list[_Change]) -> list[str]:
    """Files that git was told not to look at, that are there, and that would be replaced."""
    changed = {change.name for change in differing if change.old_mode}
    if not changed:
        return []
    sparse = git.run(path, "config", "--bool", "core.sparseCheckout").out.strip() == "true"
    found = []
    for entry in git.ask(path, "ls-files", "-v", "-z").split("\0"):
        flag, _, name = entry.partition(" ")
        hidden = flag.islower() or flag == "S"
        # Without a sparse checkout a file that is not there was removed by the user.
        if hidden and name in changed and (os.path.lexists(path / name) or not sparse):
            found.append(f"{name} (hidden from git by a flag)")
    return found
