"""What stands in the way of a checkout that moves from one commit to another.

git stops at untracked files, but overwrites or removes without a word: ignored files; files hidden
by `update-index --assume-unchanged` or `--skip-worktree`; and the whole folder of a submodule that
becomes something else. All of it is found here before git is called.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from scripts.repos import git, inspect
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


def find(
    path: Path, old: str, new: str, local: LocalWork, emptied: Collection[str] | None = None
) -> Obstacles:
    """Finds what is in the way of a checkout that moves from one commit to another.

    Args:
      path: the checkout.
      old: the commit that it is at.
      new: the commit that it moves to.
      local: its local work.
      emptied: of an undo: submodules whose folders are emptied before. Submodules that come back
        were here before with what is in them now.
    """
    differing = _changes(path, old, new)
    settings = {key: value for key, value in git.config(path) if key.startswith("core.")}
    search = _Search(path, differing, settings, emptied)
    files = list(search.changed(local))
    for change in differing:
        if change.old_mode == _SUBMODULE:
            if change.new_mode != _SUBMODULE and change.name not in search.emptied:
                files += search.in_submodule(change)
        elif not change.old_mode:
            files += search.at_new_path(change)
    files += search.hidden()
    submodules = [*search.moving(local)]
    if any(change.name == ".gitmodules" for change in differing):
        submodules += _renamed(path, old, new)
    return Obstacles(tuple(dict.fromkeys(files)), tuple(submodules))


def _changes(path: Path, old: str, new: str) -> list[_Change]:
    """The paths that differ between two commits."""
    # Settings may hide submodules (`ignore = all`).
    words = ("-r", "-z", "--raw", "--no-renames", "--ignore-submodules=none")
    listed = git.ask(path, "diff-tree", *words, old, new)
    words = listed.split("\0")[:-1]
    found = []
    for about, name in zip(words[::2], words[1::2], strict=True):
        old_mode, new_mode, _, new_id, _ = about[1:].split()
        modes = ["" if mode == "000000" else mode for mode in (old_mode, new_mode)]
        found.append(_Change(name, *modes, new_id))
    return found


def _renamed(path: Path, old: str, new: str) -> Iterator[tuple[str, str]]:
    """Submodules that get another path, which git would set up twice."""
    places = {name: place for place, (name, _) in inspect.recorded(path, new).items()}
    for place, (name, _) in inspect.recorded(path, old).items():
        if places.get(name, place) != place and git.is_checkout(path / place):
            yield place, f"moves to {places[name]}; git submodule deinit it first"


def _folders(name: str) -> list[str]:
    """The folders that a path is in, the outermost first."""
    parts = name.split("/")
    return ["/".join(parts[:i]) for i in range(1, len(parts))]


class _Search:
    """Finds obstacles among local changes and files on disk."""

    def __init__(
        self,
        path: Path,
        differing: list[_Change],
        settings: Mapping[str, str],
        emptied: Collection[str] | None,
    ):
        self.path, self.differing = path, differing
        self.emptied, self.undoing = emptied or (), emptied is not None
        self.old_names = {change.name for change in differing if change.old_mode}
        is_folded = settings.get("core.ignorecase") == "true"
        self.folded = {name.casefold() for name in self.old_names} if is_folded else set()
        self.is_sparse = settings.get("core.sparsecheckout") == "true"

    def changed(self, local: LocalWork) -> Iterator[str]:
        """Local changes at the paths that differ, above or below them."""
        names = {change.name for change in self.differing}
        above = {folder for name in names for folder in _folders(name)}
        for name in local.changed:
            if name in names or name in above or not names.isdisjoint(_folders(name)):
                yield name

    def at_new_path(self, change: _Change) -> list[str]:
        """What exists at a new path, or instead of one of its folders."""
        for name in (*_folders(change.name), change.name):
            if not os.path.lexists(self.path / name):
                return []
            if not self._is_folder(name):
                is_replaced = name in self.old_names or name.casefold() in self.folded
                return [] if is_replaced else [name]
            if name != change.name and self._is_repository(name):
                return [name]
        if change.new_mode == _SUBMODULE and self._is_repository(change.name):
            # git leaves the folder alone; the submodule would follow.
            head = git.commit(self.path / change.name, "HEAD")
            return [] if self.undoing or head == change.new_id else [change.name]
        return self._unknown_below(change.name)

    def in_submodule(self, change: _Change) -> list[str]:
        """The submodule, when something else takes its place and its folder is not empty."""
        above = f"{change.name}/"
        if not change.new_mode and not any(c.name.startswith(above) for c in self.differing):
            return []
        holds = self._is_folder(change.name) and self._unknown_below(change.name)
        return [f"{change.name} (a submodule whose folder is not empty)"] if holds else []

    def moving(self, local: LocalWork) -> Iterator[tuple[str, str]]:
        """Submodules that move and have local changes, or an operation in progress."""
        problems = dict(local.submodules)
        for change in self.differing:
            if change.old_mode == change.new_mode == _SUBMODULE:
                place, words = self.path / change.name, problems.get(change.name, "")
                if not words and git.is_checkout(place):
                    words = inspect.unfinished(git.git_dir(place)).words()
                if words and words != inspect.UNTRACKED:
                    yield change.name, words

    def hidden(self) -> Iterator[str]:
        """Files that a flag hides from git, and that would be replaced."""
        if not self.old_names:
            return
        for entry in git.ask(self.path, "ls-files", "-v", "-z").split("\0"):
            flag, _, name = entry.partition(" ")
            is_hidden = name in self.old_names and (flag.islower() or flag == "S")
            # Without a sparse checkout a file that is not there was removed by the user.
            if is_hidden and (not self.is_sparse or os.path.lexists(self.path / name)):
                yield f"{name} (hidden from git by a flag)"

    def _is_folder(self, name: str) -> bool:
        return os.path.isdir(self.path / name) and not os.path.islink(self.path / name)

    def _is_repository(self, name: str) -> bool:
        """Whether a folder is another repository, and stays one."""
        return name not in self.emptied and git.is_checkout(self.path / name)

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
