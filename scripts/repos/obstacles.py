"""Finds files that would be lost if a checkout moved from one commit to another.

git stops at untracked files, but overwrites or removes without a word: ignored files; files hidden
by `update-index --assume-unchanged` or `--skip-worktree`; and the whole folder of a submodule that
becomes something else. All of it is found here before git is called.
"""

import functools
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from scripts.repos import git, inspect
from scripts.repos.model import Ended, LocalWork, Repo, shortened

SUBMODULE = "160000"


class Change(NamedTuple):
    """A path that differs between two commits; an empty mode is none."""

    name: str
    old_mode: str
    new_mode: str
    new_id: str


def check(repo: Repo, new: str, is_undo: bool = False) -> None:
    """Raises Ended when something is in the way of the commit that HEAD would move to."""
    problem, files = find(repo.path, repo.head or "", new, repo.local, is_undo)
    if problem:
        remedy = ["commit or stash these changes, or move the files elsewhere"] if files else []
        raise Ended(repo.skipped(problem, repo.command("status"), *remedy, files=files))


def find(
    path: Path, old: str, new: str, local: LocalWork, is_undo: bool = False
) -> tuple[str, tuple[str, ...]]:
    """What is in the way of a checkout that moves from one commit to another, in words.

    Also the files whose content would be lost; none where it is submodules that cannot move. An
    undo empties the folders of new submodules first, and submodules that it restores were here
    before with what is in them now.
    """
    search = _Search(path, changes(path, old, new), is_undo)
    if is_undo:
        search.emptied = inspect.removable(path, old, new)
    staying = [*search.moving(local)]
    if ".gitmodules" in search.names:
        staying += _misplaced(path, old, new)
    if staying:
        return ", ".join(f"submodule {name} {why}" for name, why in staying), ()
    found = (*search.known(local), *search.unknown(), *search.protected())
    files = tuple(dict.fromkeys(found))
    return f"in the way: {shortened(files)}" if files else "", files


@functools.cache
def changes(path: Path, old: str, new: str) -> list[Change]:
    """The paths that differ between two commits."""
    # Settings may hide submodules (`ignore = all`).
    words = ("-r", "-z", "--raw", "--no-renames", "--ignore-submodules=none")
    listed = git.names(path, "diff-tree", *words, old, new)
    found = []
    for about, name in zip(listed[::2], listed[1::2], strict=True):
        old_mode, new_mode, _, new_id, _ = about[1:].split()
        old_mode, new_mode = (mode.removeprefix("000000") for mode in (old_mode, new_mode))
        found.append(Change(name, old_mode, new_mode, new_id))
    return found


def _misplaced(path: Path, old: str, new: str) -> Iterator[tuple[str, str]]:
    """Submodules with a place that is not theirs, or with another one than before."""
    for name in inspect.unsafe(path, new):
        yield name, "has a name or path that leads elsewhere"
    after = {name: place for place, (name, _) in inspect.recorded(path, new).items()}
    for place, (name, _) in inspect.recorded(path, old).items():
        # git would leave its folder and clone it again.
        if after.get(name, place) != place and git.is_checkout(path / place):
            first = git.shell_command(path, "submodule", "deinit", "--", place)
            yield place, f"moves to {after[name]}; first:  {first}"


def _folders(name: str) -> list[str]:
    """The folders that a path is in, the outermost first."""
    parts = name.split("/")
    return ["/".join(parts[:i]) for i in range(1, len(parts))]


class _Search:
    """Finds obstacles among local changes and files on disk."""

    emptied: Collection[str] = ()

    def __init__(self, path: Path, changes: list[Change], is_undo: bool):
        self.path, self.changes, self.is_undo = path, changes, is_undo
        self.names = {change.name for change in changes}
        self.above = {folder for name in self.names for folder in _folders(name)}
        self.old_names = {change.name for change in changes if change.old_mode}

    def known(self, local: LocalWork) -> Iterator[str]:
        """Local changes at the paths that differ, above or below them; also those hidden by git."""
        for name in local.changed:
            if name in self.above or not self.names.isdisjoint((name, *_folders(name))):
                yield name
        for name in inspect.hidden(self.path) if self.old_names else ():
            if name in self.old_names:
                yield f"{name} (hidden from git by a flag)"

    def unknown(self) -> Iterator[str]:
        """Untracked files and embedded repositories at paths that the new commit uses."""
        for name, old_mode, new_mode, new_id in self.changes:
            if not old_mode:
                yield from self._at_new_path(name, new_id if new_mode == SUBMODULE else "")
            elif old_mode == SUBMODULE != new_mode and name not in self.emptied:
                is_replaced = new_mode or name in self.above
                if is_replaced and self._is_folder(name) and self._unknown_below(name):
                    yield f"{name} (a submodule whose folder is not empty)"

    def moving(self, local: LocalWork) -> Iterator[tuple[str, str]]:
        """Submodules that move and have local changes, or an operation in progress."""
        for name, old_mode, new_mode, _ in self.changes:
            if old_mode == new_mode == SUBMODULE:
                started = [f"{word} in progress" for word in inspect.in_progress(self.path / name)]
                if problem := local.submodules.get(name) or ", ".join(started):
                    yield name, problem

    def protected(self) -> Iterator[str]:
        """Folders that may not be written: git would leave their files as they are, and move on."""
        moving = {c.name for c in self.changes if c.old_mode == c.new_mode == SUBMODULE}
        above = [("", *_folders(name)) for name in self.names - moving]
        nearest = {[one for one in folders if self._is_folder(one)][-1] for folders in above}
        for folder in sorted(nearest):
            if not os.access(self.path / folder, os.W_OK | os.X_OK):
                yield f"{folder or '.'} (a folder that may not be written)"

    def _at_new_path(self, name: str, submodule: str) -> list[str]:
        """What exists at a new path, of a submodule with its commit, or instead of its folders."""
        for place in (*_folders(name), name):
            if os.path.lexists(self.path / place) and not self._is_folder(place):
                return [] if place in self.old_names else [place]
            if place not in self.emptied and git.is_checkout(self.path / place):
                # git leaves the folder of a new submodule alone; the submodule would follow.
                if place != name or not submodule:
                    return [place]
                is_there = self.is_undo or git.commit(self.path / name, "HEAD") == submodule
                return [] if is_there else [place]
        return self._unknown_below(name)

    def _is_folder(self, name: str) -> bool:
        return os.path.isdir(self.path / name) and not os.path.islink(self.path / name)

    def _unknown_below(self, folder: str) -> list[str]:
        """Files in a folder that are not the old commit's, .git files and folders included."""
        found = []
        for top, folders, files in os.walk(self.path / folder):
            inside = os.path.relpath(top, self.path)
            files += [name for name in folders if os.path.islink(os.path.join(top, name))]
            if ".git" in folders:
                found.append(f"{inside}/.git")
                folders.clear()
            names = [f"{inside}/{name}" for name in files]
            found += [name for name in names if name not in self.old_names]
        return found
