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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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


class Change(NamedTuple):
    """What a run changes: a ref, HEAD of the repository or of a submodule, or a new clone."""

    kind: str  # "ref", "head", "submodule" or "clone".
    old: str | None  # None when it is not there yet.
    new: str  # Empty when it is to be removed.
    ref: str = "HEAD"
    path: str = ""  # Of the submodule.
    branch: str | None = None  # What HEAD was attached to before, ...
    to: str | None = None  # ... and after.
    pushed: str | None = None  # The remote that the ref is pushed to.

    def line(self) -> str:
        """It for `git.update_refs`."""
        verb = f"update {self.ref}\0{self.new}" if self.new else f"delete {self.ref}"
        return f"{verb}\0{self.old}\0"


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


@dataclass
class Record:
    """What one run changes in one repository; written before each change."""

    name: str  # Of the repository.
    path: Path
    git_dir: Path
    run: str
    command: str = ""
    peers: Mapping[str, Path] = field(default_factory=dict)  # All repositories of the run.
    changes: list[Change] = field(default_factory=list)
    state: str = "begun"  # Then "done"; or "damaged".
    undone: str | None = None  # When.
    _guard: threading.Lock = field(default_factory=threading.Lock, init=False)

    def words(self) -> str:
        """How it ended, for the list of runs."""
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
                _expire(self.path, self.git_dir, keep_runs)

    def save(self) -> None:
        """Writes the record, whole or not at all."""
        content = {key: getattr(self, key) for key in ("command", "state", "undone")}
        changes = [change._asdict() for change in self.changes]
        peers = [[name, os.fsdecode(place)] for name, place in self.peers.items()]
        content |= {"schema": SCHEMA, "changes": changes, "peers": peers}
        write(file(self.git_dir, self.run), content)


def load(name: str, path: Path, git_dir: Path, run: str) -> Record:
    """The record of a run in a repository."""
    try:
        content = json.loads(file(git_dir, run).read_text())
        changes = [Change(**change) for change in content["changes"]]
        peers = {peer: Path(place) for peer, place in content["peers"]}
        command, state, undone = (content[key] for key in ("command", "state", "undone"))
        values = [(command, str), (state, str), (undone, str | None), (content["changes"], list)]
        kinds = Change.__annotations__.values()
        values += [pair for change in changes for pair in zip(change, kinds, strict=True)]
        are_named = all((change.kind == "ref") == (change.ref != "HEAD") for change in changes)
        if content["schema"] == SCHEMA and are_named and all(isinstance(*pair) for pair in values):
            return Record(name, path, git_dir, run, command, peers, changes, state, undone)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return Record(name, path, git_dir, run, state="damaged")


def keep(place: Path, run: str, change: Change) -> None:
    """Writes the old value of a ref to refs/update-repos/<run>/ of a repository or submodule."""
    # Each worktree has a HEAD, and all share their refs.
    name = change.ref.removeprefix("refs/") if change.ref != "HEAD" else f"HEAD/{change.old}"
    if change.old is not None:
        git.update_refs(place, [f"update {PREFIX}/{run}/{name}\0{change.old}\0\0"])


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
        changes = load("", path, git_dir, run).changes
        places |= {Path(change.path) for change in changes if change.path}
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
