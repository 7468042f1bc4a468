"""The lock of a repository, the records of runs, and the submodules that a run left behind.

    <common git folder>                     is locked (flock) while a run works in the repository
    refs/update-repos/<run>/heads/main      the old value of refs/heads/main
    <git folder>/update-repos/<run>.json    what the run was about to change: old and new values
    <git folder>/update-repos/state.json    submodules that still have to follow

Each is written before the change that it describes, so a process that is killed at any moment
leaves behind what `undo` and the next run need. A run is named after its time (UTC):
20261121T123456-123456. Old runs are deleted by count.
"""

import contextlib
import fcntl
import json
import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scripts.repos import git

PREFIX = "refs/update-repos"
SCHEMA = "update-repos-run/1"
_STATE = "state.json"


class Busy(Exception):
    """Another run works in the repository."""


class Locks:
    """Keeps other runs out of repositories until this process ends."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[int, threading.Lock]] = {}
        self._guard = threading.Lock()

    def acquire(self, common_dir: Path) -> threading.Lock:
        """Locks a common git folder, which all worktrees share; raises Busy if it is locked.

        Returns the lock that its worktrees take in turn within this process.
        """
        place = os.path.realpath(common_dir)
        with self._guard:
            if place in self._held:
                return self._held[place][1]
            descriptor = os.open(place, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                raise Busy from None
            self._held[place] = descriptor, threading.Lock()
            return self._held[place][1]


class Move(NamedTuple):
    """A ref, or HEAD, that is about to move."""

    ref: str
    old: str | None  # None when it is not there yet.
    new: str  # Empty when it is to be removed.


# What a change of each kind is recorded with at least.
_FIELDS = {
    "ref": {"ref", "old", "new"},
    "head": {"old", "new", "branch"},
    "submodule": {"path", "old", "new", "branch"},
    "remote": {"name", "old", "new"},
    "clone": set(),
}


def new_run() -> str:
    """The name of a new run; names sort by time."""
    seconds, rest = divmod(time.time_ns(), 1_000_000_000)
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(seconds))}-{rest // 1000:06}"


def folder(git_dir: Path) -> Path:
    """Where the records of a checkout are."""
    return git_dir / "update-repos"


def runs(git_dir: Path) -> list[str]:
    """Names of the recorded runs, oldest first."""
    return sorted(file.stem for file in folder(git_dir).glob("*.json") if file.name != _STATE)


def load(git_dir: Path, run: str) -> dict[str, Any] | None:
    """The record of a run; None when it is damaged."""
    try:
        record = json.loads((folder(git_dir) / f"{run}.json").read_text())
        changes_are_whole = all(_FIELDS[c["kind"]] <= set(c) for c in record["changes"])
        is_whole = record["schema"] == SCHEMA and changes_are_whole
        return record if is_whole and {"undone", "state", "peers"} <= set(record) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def pending(git_dir: Path) -> dict[str, str | None]:
    """Submodules that have to follow still: paths, and the commits that they were left at.

    None instead of a commit stands for a submodule that has to be cloned.
    """
    try:
        found = json.loads((folder(git_dir) / _STATE).read_text())["submodules"]
        return {str(path): old and str(old) for path, old in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def set_pending(git_dir: Path, submodules: Mapping[str, str | None]) -> None:
    """Writes which submodules have to follow still."""
    if submodules:
        write(folder(git_dir) / _STATE, {"submodules": dict(submodules)})
    elif folder(git_dir).is_dir():
        (folder(git_dir) / _STATE).unlink(missing_ok=True)


class Journal:
    """What one run changes in one repository; written before each change."""

    def __init__(
        self, path: Path, git_dir: Path, run: str, peers: Mapping[str, Path], command: str
    ):
        """Begins a record in memory; `peers` are all repositories of the run."""
        self.path, self.git_dir, self.run = path, git_dir, run
        self._guard = threading.Lock()
        self.changes: list[dict[str, Any]] = []
        self._record: dict[str, Any] = {
            **{"schema": SCHEMA, "command": command, "state": "begun", "undone": None},
            "changes": self.changes,
            "peers": [[name, os.fsdecode(place)] for name, place in peers.items()],
        }

    def keep(self, moves: Sequence[Move], **more: Any) -> None:
        """Keeps the old values of refs, and records their new ones, and `more` with each."""
        keep_refs(self.path, self.run, moves)
        for move in moves:
            self.note("ref", **move._asdict(), **more)

    def note(self, kind: str, **fields: Any) -> None:
        """Adds a change to the record."""
        with self._guard:
            self.changes.append({"kind": kind, **fields})
            self.save()

    def finish(self, keep_runs: int | None = None) -> None:
        """Records that the run came to its end; deletes all but so many runs."""
        if self.changes:
            self._record["state"] = "done"
            self.save()
            if keep_runs is not None:
                _expire(self.path, self.git_dir, keep_runs)

    def save(self) -> None:
        """Writes the record, whole or not at all."""
        write(folder(self.git_dir) / f"{self.run}.json", self._record)


def keep_refs(path: Path, run: str, moves: Iterable[Move]) -> None:
    """Writes old values to refs/update-repos/<run>/, all or none."""
    lines = []
    for move in moves:
        if move.old is not None:
            name = f"{PREFIX}/{run}/{move.ref.removeprefix('refs/')}"
            lines.append(f"update {name}\0{move.old}\0\0")
    if lines:
        git.change(path, "update-ref", "--stdin", "-z", text="".join(lines))


def write(file: Path, content: Mapping[str, Any]) -> None:
    """Writes a file of JSON, whole or not at all."""
    file.parent.mkdir(exist_ok=True)
    temporary = file.with_suffix(".new")
    # Addresses of remotes may hold passwords.
    temporary.touch(mode=0o600)
    with temporary.open("w") as stream:
        json.dump(content, stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(file)


def _expire(path: Path, git_dir: Path, keep: int) -> None:
    """Deletes all but the latest runs of a repository."""
    listed = git.ask(path, "for-each-ref", "--format=%(refname)", f"{PREFIX}/")
    # Names of branches may hold characters that `splitlines` takes for line ends.
    refs = [ref for ref in listed.split("\n") if ref]
    names = sorted({ref.split("/")[2] for ref in refs} | set(runs(git_dir)))
    old = set(names[:-keep] if keep else names)
    gone = [f"delete {ref}\0\0" for ref in refs if ref.split("/")[2] in old]
    if gone:
        git.change(path, "update-ref", "--stdin", "-z", text="".join(gone))
    for run in old:
        with contextlib.suppress(FileNotFoundError):
            (folder(git_dir) / f"{run}.json").unlink()
