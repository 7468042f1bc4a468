"""The lock of a repository, the records of runs, and the submodules that a run left behind.

    <common git folder>                     is locked (flock) while a run works in the repository
    refs/update-repos/<run>/heads/main      the old value of a branch; of HEAD, in submodules
    <git folder>/update-repos/<run>.json    what the run was about to change: old and new values
    <git folder>/update-repos/state.json    submodules that still have to follow

Each is written before the change that it describes, so a process that is killed at any moment
leaves behind what `undo` and the next run need.
"""

import contextlib
import datetime
import fcntl
import json
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from scripts.repos import git

PREFIX = "refs/update-repos"
_SCHEMA = "update-repos-run/2"

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
    """What a run changes: a branch."""

    ref: str
    old: str
    new: str

    def line(self) -> str:
        """The line of this change for `git.update_refs`."""
        return f"update {self.ref}\0{self.new}\0{self.old}\0"


def new_run() -> str:
    """The name of a new run; names sort by time."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%S-%f")


def folder(path: Path) -> Path:
    """Where the records of a checkout, or of its git folder, are."""
    return git.git_dir(path) / "update-repos"


def file(path: Path, run: str) -> Path:
    return folder(path) / f"{run}.json"


def runs(path: Path) -> list[str]:
    return sorted({place.stem for place in folder(path).glob("*.json")} - {"state"})


def pending(path: Path) -> dict[str, str | None]:
    """Submodules that have to follow still: paths, and the commits that they were left at.

    None instead of a commit stands for a submodule that has to be cloned.
    """
    try:
        found = json.loads(file(path, "state").read_text())["submodules"]
        return {str(name): old and str(old) for name, old in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def set_pending(path: Path, submodules: Mapping[str, str | None]) -> None:
    """Writes which submodules have to follow still."""
    if submodules:
        _write(file(path, "state"), {"submodules": dict(submodules)})
    elif folder(path).is_dir():
        file(path, "state").unlink(missing_ok=True)


@dataclass
class Record:
    """What one run changes in one repository; written before each change."""

    name: str  # The repository's name.
    path: Path
    run: str
    command: str = ""
    peers: Mapping[str, Path] = field(default_factory=dict)  # All repositories of the run.
    changes: list[Change] = field(default_factory=list)
    state: str = "begun"  # Then "done"; or "damaged".
    undone: str = ""  # When.
    undoes: str = ""  # The run that this one undoes.

    def describe(self) -> str:
        """Its state, for the list of runs."""
        if self.undone:
            return f"undone {self.undone}"
        return {"begun": "interrupted", "done": self.command}.get(self.state, self.state)

    def add(self, change: Change) -> None:
        """Keeps the old value of what is about to change, and records the change."""
        keep(self.path, self.run, change.ref.removeprefix("refs/"), change.old)
        self.changes.append(change)
        self.save()

    def finish(self, keep_runs: int | None = None) -> None:
        """Records that the run came to its end; deletes all but so many runs."""
        if self.changes:
            self.state = "done"
            self.save()
            if keep_runs is not None:
                expire(self.path, keep_runs)

    def save(self) -> None:
        content = {key: getattr(self, key) for key in ("command", "state", "undone")}
        changes = [change._asdict() for change in self.changes]
        peers = {name: os.fsdecode(place) for name, place in self.peers.items()}
        content |= {"schema": _SCHEMA, "changes": changes, "peers": peers}
        _write(file(self.path, self.run), content)


def load(name: str, path: Path, run: str) -> Record:
    """The record of a run; one that is damaged, or of another version, has no changes."""
    try:
        content = json.loads(file(path, run).read_text())
        words = [str(content[key]) for key in ("command", "state", "undone")]
        peers = {str(peer): Path(place) for peer, place in content["peers"].items()}
        changes = [
            Change(*(str(c[key]) for key in ("ref", "old", "new"))) for c in content["changes"]
        ]
        if content["schema"] == _SCHEMA:
            return Record(name, path, run, words[0], peers, changes, words[1], words[2])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return Record(name, path, run, state="damaged")


def keep(place: Path, run: str, name: str, old: str | None) -> None:
    """Writes an old value to refs/update-repos/<run>/<name> of a repository or submodule."""
    if old is not None:
        git.update_refs(place, [f"update {PREFIX}/{run}/{name}\0{old}\0\0"])


def _write(place: Path, content: Mapping[str, Any]) -> None:
    """Writes a file, whole or not at all."""
    place.parent.mkdir(exist_ok=True)
    temporary = place.with_name(f".{place.name}.new")
    try:
        with temporary.open("w", encoding="utf-8") as stream:
            stream.write(json.dumps(content, indent=1))
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(place)
    finally:
        temporary.unlink(missing_ok=True)


def expire(place: Path, most: int) -> None:
    """Deletes all but the latest runs of a repository or submodule."""
    # Names of branches may hold characters that `splitlines` takes for line ends.
    refs = git.ask(place, "for-each-ref", "--format=%(refname)", f"{PREFIX}/").split("\n")
    by_run = [(ref.split("/")[2], ref) for ref in refs if ref]
    names = runs(place) or sorted({run for run, _ in by_run})
    old = names[: max(0, len(names) - most)]
    for run in old:
        file(place, run).unlink(missing_ok=True)
    # Worktrees have records of their own, and share their refs.
    common = git.common_dir(place)
    kept = {run for tree in (common, *common.glob("worktrees/*")) for run in runs(tree)}
    gone = [ref for run, ref in by_run if run <= max(old, default="") and run not in kept]
    git.update_refs(place, [f"delete {ref}\0\0" for ref in gone])
