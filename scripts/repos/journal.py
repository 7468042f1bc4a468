"""The lock of a repository, and what runs changed there, as refs: git writes them whole or not.

    <common git folder>                         is locked (flock) while a run works there
    refs/update-repos/<run>/<tree>/old/<ref>    what a branch, or a submodule's HEAD, was before
    refs/update-repos/<run>/<tree>/new/<ref>    what the run moves it to
    refs/update-repos/<run>/<tree>/left         HEAD before it moved, until all submodules followed

<tree> is a worktree: they share their refs. All are written before the change that they describe,
so a process that is killed at any moment leaves behind what `undo` and the next run need.
"""

import contextlib
import datetime
import fcntl
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from scripts.repos import git

_UNDO = "-undo"  # The end of the name of a run that undoes another one.
_KEPT_RUNS = 20

# The common git folders that this process has locked, and the turns of their worktrees.
_thread_locks: dict[str, threading.Lock] = {}
# The locks of the file system, which end with the process.
_descriptors: dict[str, int] = {}


@contextlib.contextmanager
def hold(path: Path) -> Iterator[None]:
    """Locks the common git folder of a checkout until this process ends, or BlockingIOError.

    Within this process the worktrees, which share that folder, take turns.
    """
    place = os.path.realpath(git.common_dir(path))
    with _thread_locks.setdefault(place, threading.Lock()):
        if place not in _descriptors:
            descriptor = os.open(place, os.O_RDONLY)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _descriptors[place] = descriptor
        yield


class Change(NamedTuple):
    """What a run changes: a branch, or the detached HEAD of a submodule."""

    ref: str
    old: str
    new: str


Runs = dict[str, dict[str, Change]]  # What runs changed, by run and repository.


def new_run(*, is_undo: bool = False) -> str:
    """The name of a new run; names sort by time."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%S-%f") + _UNDO * is_undo


def is_undo(run: str) -> bool:
    return run.endswith(_UNDO)


def refs_of(path: Path, key: str, run: str = "*") -> str:
    """The name of a ref of a run in a worktree, or a pattern for those of all runs."""
    own = git.git_dir(path)
    tree = own.name if (own / "commondir").is_file() else "-"
    return f"refs/update-repos/{run}/{tree}/{key}"


def save(path: Path, run: str, change: Change) -> None:
    """Records what is about to change."""
    name = change.ref.removeprefix("refs/")
    values = {f"old/{name}": change.old, f"new/{name}": change.new, "left": change.old}
    refs = {refs_of(path, key, run): commit for key, commit in values.items()}
    git.update_refs(path, [f"update {ref}\0{commit}\0\0" for ref, commit in refs.items()])


def runs(path: Path) -> dict[str, Change]:
    """What each run changed, oldest first."""
    found: dict[str, Change] = {}
    refs = _refs(path)
    for (run, key), (_, old) in sorted(refs.items()):
        name = key.removeprefix("old/")
        if name != key and (new := refs.get((run, f"new/{name}"))):
            found[run] = Change(f"refs/{name}" if "/" in name else name, old, new[1])
    return found


def followed(path: Path) -> None:
    """Records that all submodules have followed; deletes all but the latest runs."""
    refs = _refs(path)
    old = sorted({run for run, _ in refs})[:-_KEPT_RUNS]
    _delete(path, [ref for (run, key), (ref, _) in refs.items() if key == "left" or run in old])


def forget(path: Path, run: str) -> None:
    """Deletes what is recorded of a run."""
    _delete(path, [ref for (name, _), (ref, _) in _refs(path).items() if name == run])


def _delete(path: Path, refs: Iterable[str]) -> None:
    git.update_refs(path, [f"delete {ref}\0\0" for ref in refs])


def _refs(path: Path) -> dict[tuple[str, str], tuple[str, str]]:
    """The refs of runs in a worktree, by run and key: their names and commits."""
    # Names of branches may hold characters that `splitlines` takes for line ends.
    words = ("for-each-ref", "--format=%(objectname) %(refname)", refs_of(path, "**"))
    listed = [line.split(" ", 1) for line in git.ask(path, *words).split("\n") if line]
    parts = [(name.split("/", 4), name, commit) for commit, name in listed]
    return {(run, key): (name, commit) for (_, _, run, _, key), name, commit in parts}
