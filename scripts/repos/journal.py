"""The lock of a repository, the records of runs, and the submodules that a run left behind.

    <common git folder>                     is locked (flock) while a run works in the repository
    refs/update-repos/<run>/heads/main      the old value of refs/heads/main
    <git folder>/update-repos/<run>.json    what the run was about to change: old and new values
    <git folder>/update-repos/state.json    submodules that still have to follow

Each is written before the change that it describes, so a process that is killed at any moment
leaves behind what `undo` and the next run need.
"""

import contextlib
import fcntl
import json
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scripts.repos import git

PREFIX = "refs/update-repos"
SCHEMA = "update-repos-run/1"


class Busy(Exception):
    """Another run works in the repository."""


class Locks:
    """Keeps other runs out of repositories until this process ends."""

    def __init__(self) -> None:
        self._taken: dict[str, threading.Lock] = {}
        # Open descriptors hold the locks of the file system.
        self._descriptors: dict[str, int] = {}

    @contextlib.contextmanager
    def hold(self, common_dir: Path) -> Iterator[None]:
        """Locks a common git folder, which all worktrees share; raises Busy if another run has it.

        Within this process the worktrees take turns.
        """
        place = os.path.realpath(common_dir)
        with self._taken.setdefault(place, threading.Lock()):
            if place not in self._descriptors:
                descriptor = os.open(place, os.O_RDONLY)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    os.close(descriptor)
                    raise Busy from None
                self._descriptors[place] = descriptor
            yield


class Move(NamedTuple):
    """A ref, or HEAD, that is about to move."""

    ref: str
    old: str | None  # None when it is not there yet.
    new: str  # Empty when it is to be removed.

    def line(self) -> str:
        """It for `git.update_refs`."""
        verb = f"update {self.ref}\0{self.new}" if self.new else f"delete {self.ref}"
        return f"{verb}\0{self.old}\0"


# What a change of each kind is recorded with at least.
_FIELDS = {
    "ref": {"ref", "old", "new"},
    "head": {"old", "new", "branch"},
    "submodule": {"path", "old", "new", "branch"},
    "clone": set(),
}


def new_run() -> str:
    """The name of a new run; names sort by time."""
    seconds, rest = divmod(time.time_ns(), 1_000_000_000)
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(seconds))}-{rest // 1000:06}"


def folder(git_dir: Path) -> Path:
    return git_dir / "update-repos"


def file(git_dir: Path, run: str) -> Path:
    return folder(git_dir) / f"{run}.json"


def runs(git_dir: Path) -> list[str]:
    """Names of the recorded runs, oldest first."""
    return sorted({place.stem for place in folder(git_dir).glob("*.json")} - {"state"})


def load(git_dir: Path, run: str) -> dict[str, Any] | None:
    """The record of a run; None when it is damaged."""
    try:
        record = json.loads(file(git_dir, run).read_text())
        values = [record["schema"] == SCHEMA, isinstance(record["changes"], list)]
        values += [isinstance(record[key], str) for key in ("state", "command")]
        values += [isinstance(record["undone"], str | None)]
        for name, place in record["peers"]:
            values += [isinstance(name, str), isinstance(place, str)]
        for change in record["changes"]:
            values += [isinstance(change[key], str | None) for key in _FIELDS[change["kind"]]]
            values += [isinstance(change.get(key, ""), str) for key in ("ref", "path")]
        return record if all(values) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def pending(git_dir: Path) -> dict[str, str | None]:
    """Submodules that have to follow still: paths, and the commits that they were left at.

    None instead of a commit stands for a submodule that has to be cloned.
    """
    try:
        found = json.loads(file(git_dir, "state").read_text())["submodules"]
        return {str(path): old and str(old) for path, old in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def set_pending(git_dir: Path, submodules: Mapping[str, str | None]) -> None:
    """Writes which submodules have to follow still."""
    if submodules:
        write(file(git_dir, "state"), {"submodules": dict(submodules)})
    elif folder(git_dir).is_dir():
        file(git_dir, "state").unlink(missing_ok=True)


class Journal:
    """What one run changes in one repository; written before each change."""

    def __init__(
        self, path: Path, git_dir: Path, run: str, peers: Mapping[str, Path], command: str
    ):
        """Begins a record in memory; `peers` are all repositories of the run."""
        self.path, self.run = path, run
        self.changes: list[dict[str, Any]] = []
        self._git_dir, self._guard = git_dir, threading.Lock()
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
                _expire(self.path, self._git_dir, keep_runs)

    def save(self) -> None:
        """Writes the record, whole or not at all."""
        write(file(self._git_dir, self.run), self._record)


def keep_refs(path: Path, run: str, moves: Iterable[Move]) -> None:
    """Writes old values to refs/update-repos/<run>/, all or none."""
    # Each worktree has a HEAD, and all share their refs.
    kept = [
        (move.ref.removeprefix("refs/") if move.ref != "HEAD" else f"HEAD/{move.old}", move.old)
        for move in moves
        if move.old is not None
    ]
    git.update_refs(path, [f"update {PREFIX}/{run}/{name}\0{old}\0\0" for name, old in kept])


def write(place: Path, content: Mapping[str, Any]) -> None:
    """Writes a file of JSON, whole or not at all."""
    place.parent.mkdir(exist_ok=True)
    temporary = place.with_suffix(".new")
    # Addresses of remotes may hold passwords.
    temporary.touch(mode=0o600)
    with temporary.open("w") as stream:
        json.dump(content, stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(place)


def _expire(path: Path, git_dir: Path, keep: int) -> None:
    """Deletes all but the latest runs of a repository, and what they kept in its submodules."""
    names, places = runs(git_dir), {path}
    old = names[: max(0, len(names) - keep)]
    for run in old:
        changes = (load(git_dir, run) or {"changes": []})["changes"]
        places |= {Path(change["path"]) for change in changes if change["kind"] == "submodule"}
        file(git_dir, run).unlink(missing_ok=True)
    # Worktrees have records of their own, and share their refs.
    common = git.common_dir(git_dir)
    kept = {run for tree in (common, *common.glob("worktrees/*")) for run in runs(tree)}
    for place in filter(git.is_checkout, places if old else ()):
        # Names of branches may hold characters that `splitlines` takes for line ends.
        refs = git.ask(place, "for-each-ref", "--format=%(refname)", f"{PREFIX}/").split("\n")
        by_run = [(ref.split("/")[2], ref) for ref in refs if ref]
        gone = [ref for run, ref in by_run if run <= old[-1] and run not in kept]
        git.update_refs(place, [f"delete {ref}\0\0" for ref in gone])
