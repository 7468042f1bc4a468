"""The lock of a repository, the records of runs, and the submodules that a run left behind.

    <common git folder>                     is locked (flock) while a run works in the repository
    refs/update-repos/<run>/heads/main      the old value of refs/heads/main
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
SCHEMA = "update-repos-run/1"

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
    """What a run changes: a ref, HEAD of the repository or of a submodule, a setting, ..."""

    kind: str  # "ref", "head", "submodule" (its HEAD), "clone", "moved" (a submodule), "setting".
    old: str | None  # None when it is not there yet.
    new: str  # Empty when it is to be removed.
    ref: str = "HEAD"  # Of a setting, its key.
    path: str = ""  # Of the submodule; of a setting, the checkout that has it.
    branch: str | None = None  # What HEAD was attached to before, ...
    to: str | None = None  # ... and after.
    was: str = ""  # The path of a submodule before it was moved.

    def line(self) -> str:
        """The line of this change for `git.update_refs`."""
        verb = f"update {self.ref}\0{self.new}" if self.new else f"delete {self.ref}"
        return f"{verb}\0{self.old}\0"


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

    None instead of a commit stands for a submodule that has to be cloned, an empty one for a
    submodule that has to get another path alone.
    """
    try:
        found = json.loads(file(path, "state").read_text())["submodules"]
        return {str(name): old and str(old) for name, old in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def set_pending(path: Path, submodules: Mapping[str, str | None]) -> None:
    """Writes which submodules have to follow still."""
    if submodules:
        _write_json(file(path, "state"), {"submodules": dict(submodules)})
    elif folder(path).is_dir():
        file(path, "state").unlink(missing_ok=True)


@dataclass
class Record:
    """What one run changes in one repository; written before each change."""

    name: str  # Of the repository.
    path: Path
    run: str
    command: str = ""
    peers: Mapping[str, Path] = field(default_factory=dict)  # All repositories of the run.
    changes: list[Change] = field(default_factory=list)
    state: str = "begun"  # Then "done"; or "damaged".
    undone: str | None = None  # When.
    _guard: threading.Lock = field(default_factory=threading.Lock, init=False)

    @property
    def only_fetched(self) -> bool:
        """Whether nothing but remote-tracking refs moved."""
        moved = [change.ref.startswith("refs/remotes/") for change in self.changes]
        return all(moved) and self.state != "damaged"

    def describe(self) -> str:
        """Its state, for the list of runs."""
        if self.undone is not None:
            return f"undone {self.undone}"
        return {"begun": "interrupted", "done": self.command}.get(self.state, self.state)

    def add(self, change: Change) -> None:
        """Keeps the old value of what is about to change, and records the change."""
        keep(Path(change.path or self.path), self.run, change)
        with self._guard:
            self.changes.append(change)
            self.save()

    def finish(self, keep_runs: int | None = None) -> None:
        """Records that the run came to its end; deletes all but so many runs."""
        if self.changes:
            self.state = "done"
            self.save()
            if keep_runs is not None:
                _expire(self.path, keep_runs)

    def save(self) -> None:
        content = {key: getattr(self, key) for key in ("command", "state", "undone")}
        changes = [change._asdict() for change in self.changes]
        peers = [[name, os.fsdecode(place)] for name, place in self.peers.items()]
        content |= {"schema": SCHEMA, "changes": changes, "peers": peers}
        _write_json(file(self.path, self.run), content)


def load(name: str, path: Path, run: str) -> Record:
    try:
        content = json.loads(file(path, run).read_text())
        known = [{k: c[k] for k in Change._fields if k in c} for c in content["changes"]]
        changes = [Change(**change) for change in known]
        peers = {peer: Path(place) for peer, place in content["peers"]}
        command, state, undone = (content[key] for key in ("command", "state", "undone"))
        values = [(command, str), (state, str), (undone, str | None), (content["changes"], list)]
        kinds = Change.__annotations__.values()
        values += [pair for change in changes for pair in zip(change, kinds, strict=True)]
        named = ("ref", "setting")
        are_named = all((c.kind in named) == (c.ref != "HEAD") for c in changes)
        if content["schema"] == SCHEMA and are_named and all(isinstance(*pair) for pair in values):
            return Record(name, path, run, command, peers, changes, state, undone)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return Record(name, path, run, state="damaged")


def keep(place: Path, run: str, change: Change) -> None:
    """Writes the old value of a ref to refs/update-repos/<run>/ of a repository or submodule."""
    # Each worktree has a HEAD, and all share their refs.
    name = change.ref.removeprefix("refs/") if change.ref != "HEAD" else f"HEAD/{change.old}"
    if change.old is not None and change.kind != "setting":
        git.update_refs(place, [f"update {PREFIX}/{run}/{name}\0{change.old}\0\0"])


def _write_json(place: Path, content: Mapping[str, Any]) -> None:
    place.parent.mkdir(exist_ok=True)
    write(place, json.dumps(content, indent=1))


def write(place: Path, text: str) -> None:
    """Writes a file, whole or not at all."""
    temporary = place.with_name(f".{place.name}.new")
    try:
        with temporary.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(place)
    finally:
        temporary.unlink(missing_ok=True)


def _expire(path: Path, keep: int) -> None:
    """Deletes all but the latest runs of a repository, and what they kept in its submodules.

    Those that only fetched are counted by themselves, so that they displace no others.
    """
    records, places = [load("", path, run) for run in runs(path)], {path}
    fetches = [record for record in records if record.only_fetched]
    others = [record for record in records if not record.only_fetched]
    old = [one for kind in (fetches, others) for one in kind[: max(0, len(kind) - keep)]]
    for record in old:
        places |= {Path(change.path) for change in record.changes if change.path}
        file(path, record.run).unlink(missing_ok=True)
    # Worktrees have records of their own, and share their refs.
    common = git.common_dir(path)
    kept = {run for tree in (common, *common.glob("worktrees/*")) for run in runs(tree)}
    latest = max((record.run for record in old), default="")
    for place in filter(git.is_checkout, places if old else ()):
        # Names of branches may hold characters that `splitlines` takes for line ends.
        refs = git.ask(place, "for-each-ref", "--format=%(refname)", f"{PREFIX}/").split("\n")
        by_run = [(ref.split("/")[2], ref) for ref in refs if ref]
        gone = [ref for run, ref in by_run if run <= latest and run not in kept]
        git.update_refs(place, [f"delete {ref}\0\0" for ref in gone])
