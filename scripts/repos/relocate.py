"""Moves a submodule that gets another path, or another address, with everything in it.

The folder is renamed, so branches, local changes and untracked files go with it; then the paths by
which the folder and its git folder know each other are corrected, in the submodules below, too.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from scripts.repos import git, inspect, journal
from scripts.repos.model import shortened


def move(old: Path, new: Path, record: journal.Record) -> None:
    """Moves a submodule; raises git.Problem when something is at its new place."""
    found = sorted(os.listdir(new)) if new.is_dir() else [new.name] * os.path.lexists(new)
    if found:
        raise git.Problem(f"in the way of its move from {old}: {shortened(found)}")
    record.add(journal.Change("moved", None, "", path=str(new), was=str(old)))
    for place in _checkouts(old):
        git_dir = git.git_dir(place).resolve()
        if not git_dir.is_relative_to(old.resolve()):
            # Right before and after the move: a process that is killed leaves a repository behind.
            _link(place, str(git_dir))
    new.parent.mkdir(parents=True, exist_ok=True)
    old.rename(new)
    _repair(new)
    outer = Path(record.path)
    for parent in old.parents:
        if parent == outer or not parent.is_relative_to(outer) or any(parent.iterdir()):
            break
        parent.rmdir()


def repair(path: Path) -> None:
    """Corrects the paths of submodules that a run was moving when it was killed.

    Until then git fails in their repository, too.
    """
    for name in journal.pending(path):
        if git.is_checkout(path / name):
            _repair(path / name)


def _repair(place: Path) -> None:
    """Corrects how a submodule, those in it, and their git folders know each other."""
    for one in _checkouts(place):
        git_dir = git.git_dir(one).resolve()
        file, known = inspect.files_setting(git_dir)
        wanted = os.path.relpath(one.resolve(), git_dir)
        if (one / ".git").is_file() and os.path.normpath(git_dir / known) != str(one.resolve()):
            git.ask(git_dir.parent, "config", "--file", str(file), "core.worktree", wanted)
            _link(one, os.path.relpath(git_dir, one.resolve()))


def follow_addresses(path: Path, old: str, new: str, record: journal.Record) -> None:
    """Writes the addresses that change in .gitmodules to the settings that still have the old ones.

    Raises git.Problem.
    """
    before, after = (inspect.modules(path, commit, "url") for commit in (old, new))
    places = {name: place for place, (name, _) in inspect.recorded(path, new).items()}
    for name in places.keys() & before.keys() & after.keys():
        if before[name] == after[name]:
            continue
        was, now = (_resolved(path, urls[name]) for urls in (before, after))
        settings = [(path, f"submodule.{name}.url")]
        if (inner := inspect.files_of(path, places[name], name)) is not None:
            remotes = git.subsections(git.config(inner), "remote", "url")
            settings += [(inner, f"remote.{remote}.url") for remote, _ in remotes]
        for folder, key in settings:
            set_setting(record, journal.Change("setting", was, now, key, str(folder)))


def set_setting(record: journal.Record, change: journal.Change) -> bool:
    """Replaces the value of a setting, if it is still the old one of the change."""
    folder = Path(change.path)
    now = dict(git.config(folder, "--local")).get(change.ref, "")
    if now == change.new:
        return True
    if now != (change.old or ""):
        return False
    record.add(change)
    git.ask(folder, "config", "--local", change.ref, change.new)
    return True


def _checkouts(place: Path) -> Iterator[Path]:
    """A submodule and all that are in it, the outer ones first: git reads no broken one."""
    yield place
    for name in inspect.recorded(place):
        if git.is_checkout(place / name):
            yield from _checkouts(place / name)


def _link(place: Path, git_dir: str) -> None:
    journal.write(place / ".git", f"gitdir: {git_dir}\n")


def _resolved(path: Path, address: str) -> str:
    """An address of .gitmodules as `git submodule init` writes it."""
    if not address.startswith(("./", "../")):
        return address
    config = dict(git.config(path))
    remote = config.get(f"branch.{git.branch(path)}.remote", "origin")
    base, rest = config.get(f"remote.{remote}.url", str(path)).rstrip("/"), address
    while rest.startswith(("./", "../")):
        step, _, rest = rest.partition("/")
        separator = "/" if "/" in base else ":"
        base = base.rpartition(separator)[0] if step == ".." else base
    return f"{base}/{rest}"
