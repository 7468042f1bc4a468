"""What the refs were before a run moved them, kept where nothing can lose it.

    refs/update-repos/<run>/heads/main      the old value of refs/heads/main
    <git folder>/update-repos/<run>.json    what the run was about to change: old and new values

Both are written before anything moves, so a process that is killed at any moment leaves behind
what `undo` needs. A run is named after its time (UTC): 20261121T123456-123456. Old runs are
forgotten by count.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from scripts.repos import git

PREFIX = "refs/update-repos"
SCHEMA = "update-repos-run/1"


class Move(NamedTuple):
    """A ref that is about to move.

    Attributes:
      ref: full name; HEAD for what is checked out in a submodule; stash for a stash.
      old: commit; None when the ref is not there yet.
      new: commit.
    """

    ref: str
    old: str | None
    new: str


def new_run() -> str:
    """The name of a new run; names sort by time."""
    seconds, rest = divmod(time.time_ns(), 1_000_000_000)
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(seconds))}-{rest // 1000:06}"


def folder(git_dir: Path) -> Path:
    """Where the records of a checkout are."""
    return git_dir / "update-repos"


def unfinished(git_dir: Path) -> str | None:
    """The latest run, if it was interrupted while it held local changes."""
    for run in reversed(runs(git_dir)):
        record = load(git_dir, run)
        if record.get("state") == "done" or record.get("undone"):
            return None
        stashes = [change for change in record["changes"] if change["kind"] == "stash"]
        return run if any(not change["restored"] for change in stashes) else None
    return None


def runs(git_dir: Path) -> list[str]:
    """Names of the recorded runs, oldest first."""
    try:
        return sorted(file.stem for file in folder(git_dir).glob("*.json"))
    except OSError:
        return []


def load(git_dir: Path, run: str) -> dict[str, Any]:
    """The record of a run."""
    import json

    return json.loads((folder(git_dir) / f"{run}.json").read_text())


class Busy(Exception):
    """Another run works in the repository."""


class Journal:
    """What one run changes in one repository; written before each change.

    Nothing is written as long as nothing changes.
    """

    def __init__(
        self,
        path: Path,
        git_dir: Path,
        run: str,
        peers: Iterable[tuple[str, Path]],
        command: str = "update",
    ):
        """Begins a record in memory.

        Args:
          path: the checkout.
          git_dir: its git folder.
          run: name of the run.
          peers: names and folders of all repositories of the run.
          command: what the run is.
        """
        self.path = path
        self.git_dir = git_dir
        self.run = run
        self._lock: IO[str] | None = None
        self._record: dict[str, Any] = {
            "schema": SCHEMA,
            "run": run,
            "command": command,
            "path": os.fsdecode(path),
            "state": "begun",
            "undone": None,
            "peers": [[name, os.fsdecode(place)] for name, place in peers],
            "changes": [],
        }

    @property
    def changes(self) -> list[dict[str, Any]]:
        return self._record["changes"]

    def acquire(self) -> None:
        """Keeps other runs out of this checkout until `release`, or until the process ends.

        Raises:
          Busy: another run is in it.
        """
        if self._lock is not None:
            return
        folder(self.git_dir).mkdir(exist_ok=True)
        lock = (folder(self.git_dir) / "lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise Busy from None
        self._lock = lock

    def release(self) -> None:
        """Lets other runs in."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def keep(self, moves: Sequence[Move], **more: Any) -> None:
        """Keeps the old values of refs, and says what they are going to be.

        Args:
          moves: the refs.
          **more: said with each of them in the record.
        """
        self.acquire()
        keep_refs(self.path, self.run, moves)
        for move in moves:
            self.note("ref", **move._asdict(), **more)

    def note(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Adds a change to the record; returns it, to be completed."""
        self.acquire()
        self.changes.append({"kind": kind, **fields})
        self.save()
        return self.changes[-1]

    def finish(self) -> None:
        """Says that the run did all that it wanted to."""
        if self.changes:
            self._record["state"] = "done"
            self.save()

    def save(self) -> None:
        """Writes the record, whole or not at all."""
        write(self.git_dir, self._record)


def keep_refs(path: Path, run: str, moves: Iterable[Move]) -> None:
    """Writes old values to refs/update-repos/<run>/, all or none."""
    lines = []
    for move in moves:
        if move.old is not None:
            name = f"{PREFIX}/{run}/{move.ref.removeprefix('refs/')}"
            lines.append(f"update {name}\0{move.old}\0\0")
    if lines:
        git.change(path, "update-ref", "--stdin", "-z", text="".join(lines))


def write(git_dir: Path, record: dict[str, Any]) -> None:
    """Writes a record, whole or not at all."""
    import json

    file = folder(git_dir) / f"{record['run']}.json"
    file.parent.mkdir(exist_ok=True)
    temporary = file.with_suffix(".new")
    # Addresses of remotes may hold passwords.
    temporary.touch(mode=0o600)
    with temporary.open("w") as stream:
        json.dump(record, stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(file)


def expire(path: Path, git_dir: Path, keep: int) -> None:
    """Forgets all but the latest runs of a repository."""
    form = "--format=%(refname)"
    # Names of branches hold characters that Python takes for the end of a line.
    refs = [ref for ref in git.ask(path, "for-each-ref", form, f"{PREFIX}/").split("\n") if ref]
    names = sorted({ref.split("/")[2] for ref in refs} | set(runs(git_dir)))
    old = set(names[:-keep] if keep else names)
    if not old:
        return
    gone = [ref for ref in refs if ref.split("/")[2] in old]
    text = "".join(f"delete {ref}\0\0" for ref in gone)
    git.change(path, "update-ref", "--stdin", "-z", text=text)
    for run in old:
        with contextlib.suppress(FileNotFoundError):
            (folder(git_dir) / f"{run}.json").unlink()
