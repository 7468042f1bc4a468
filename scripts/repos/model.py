"""The values that pass from phase to phase; `Repo` is the record of one repository in a run."""

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from scripts.repos import git


class UsageError(Exception):
    """The tool was called in a way that it cannot serve: exit code 2."""


class Entry(NamedTuple):
    """One repository of the table, see repositories.toml."""

    name: str = ""
    folders: Sequence[str] = []
    upstream: Sequence[str] = []
    branch: str = ""
    depends: Sequence[str] = []
    optional: bool = False
    project: bool = False
    pins: Mapping[str, str] = {}
    path: str = ""
    rebuild: str = ""

    @property
    def needs(self) -> list[str]:
        """The repositories that come before this one."""
        return [*self.depends, *self.pins]


class Run(NamedTuple):
    """One call of the tool: what the user asked for, beside the repositories."""

    name: str
    undoes: str = ""  # The run that this one undoes.
    online: bool = True  # Servers are called.
    acting: bool = True  # More than remote-tracking refs is changed.
    integrate: str | None = None  # "rebase" or "merge", for feature branches.
    pinned: bool = False
    jobs: int = 8  # Repositories, or submodules of one, that are worked on at once.
    places: Mapping[str, Path] = {}  # The folders of all repositories that are there.


class LocalWork(NamedTuple):
    """What a checkout holds that is in no commit, or that is not finished."""

    # Paths; of an untracked folder the folder alone.
    changed: Sequence[str] = ()  # Staged or not.
    conflicted: Sequence[str] = ()
    untracked: Sequence[str] = ()
    submodules: Mapping[str, str] = {}  # Paths and problems.
    in_progress: Sequence[str] = ()  # Operations such as "rebase".

    def describe(self) -> str:
        """All of it in one line; empty when there is nothing."""
        parts = [f"{name} in progress" for name in self.in_progress]
        kinds = ("conflicted", "changed", "untracked")
        parts += [f"{len(getattr(self, kind))} {kind}" for kind in kinds if getattr(self, kind)]
        parts += [f"submodule {path} {problem}" for path, problem in self.submodules.items()]
        return ", ".join(parts)


class Relation(NamedTuple):
    """How a commit relates to the one that it should follow."""

    ahead: int = 0
    behind: int = 0
    rewritten: bool = False  # It has commits that the upstream had once and no longer has.


class Action(Enum):
    """What is done with the checked-out branch, in words that the target follows."""

    NOTHING = ""
    FAST_FORWARD = "fast-forward to"
    REBASE = "rebase onto"
    MERGE = "merge"


class Status(Enum):
    """How it ended for one repository; the values are those of the JSON."""

    CURRENT = "current"
    UPDATED = "updated"
    PLANNED = "planned"
    KEPT = "kept"
    SKIPPED = "skipped"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    MISSING = "missing"
    ABSENT = "absent"
    UNDONE = "undone"


# The exit codes of ends that need a person, or a server.
_CODES = {Status.SKIPPED: 1, Status.FAILED: 1, Status.MISSING: 1, Status.UNREACHABLE: 3}


class Repo(NamedTuple):
    """One repository in a run: what it is, what is planned and what happened.

    Each phase returns the record with its own fields filled in, or raises `Ended` with it. Once
    `status` is set, later phases leave the repository alone; `apply` takes those that are planned.
    """

    entry: Entry
    path: Path  # Where it is, or is expected.
    found: str = ""  # How it was found; empty when it was not.
    official: str | None = None  # The remote that is the upstream.
    head: str | None = None  # None on a branch without commits.
    branch: str | None = None  # None when HEAD is detached.
    # The upstream's default branch, its remote-tracking ref before this run, and its end.
    default_branch: str | None = None
    remembered: str | None = None
    tip: str | None = None
    local: LocalWork = LocalWork()
    # The commits that HEAD had before runs that left submodules behind, and whether some still are.
    before: Sequence[str] = ()
    pending: bool = False

    # The plan for HEAD, and the commit to follow: the tip or a pin.
    action: Action = Action.NOTHING
    target: str | None = None
    target_name: str = ""
    pinned_by: str = ""
    relation: Relation = Relation()  # How HEAD relates to the target.

    # The end: in words, commands for a person, files in conflict or in the way, commit of HEAD.
    status: Status | None = None
    reason: str = ""
    remedy: Sequence[str] = ()
    files: Sequence[str] = ()
    new: str | None = None
    notes: Sequence[str] = ()
    code: int = 0  # The exit code that it asks for.

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def tracking(self) -> str:
        """The remote-tracking ref of the upstream's default branch."""
        return f"refs/remotes/{self.official}/{self.default_branch}"

    @property
    def target_ref(self) -> str:
        """The target as commands of git name it."""
        return (self.target or "") if self.pinned_by else self.target_name

    def command(self, *words: str) -> str:
        """A call of git in this repository, for a person's shell."""
        return git.shell_command(self.path, *words)

    def noting(self, *notes: str) -> "Repo":
        return self._replace(notes=(*self.notes, *filter(None, notes)))

    def ended(self, status: Status, reason: str = "", *remedy: str, **fields: Any) -> "Repo":
        """The same repository at its end; HEAD is where it was if `fields` has no `new`."""
        code = _CODES.get(status, 0)
        end = {"status": status, "code": code, "reason": reason, "remedy": remedy, "new": self.head}
        return self._replace(**{**end, **fields})

    def skipped(self, reason: str, *remedy: str, **fields: Any) -> "Repo":
        """The same repository at its end, because a person has to act before it can be updated."""
        return self.ended(Status.SKIPPED, reason, *remedy, **fields)


class Ended(Exception):
    """Ends the current phase for one repository, whose record it holds."""

    def __init__(self, repo: Repo):
        self.repo = repo


def shortened(names: Sequence[str], most: int = 3) -> str:
    """The first names of many, in words."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
