"""The values that pass from phase to phase. All are frozen; none does anything."""

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import NamedTuple

# What is said of a submodule that has nothing worse than files that git does not know.
UNTRACKED = "has untracked files"


class UsageError(Exception):
    """The tool was called in a way that it does not serve: exit code 2.

    Args:
      problem: what is wrong, and where.
      remedy: what mends it.
    """

    def __init__(self, problem: str, remedy: str):
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


class Settings(NamedTuple):
    """Numbers of the table, see repositories.toml."""

    timeout: float = 60.0
    retries: int = 2
    backoff: float = 1.0
    jobs: int = 8
    keep_runs: int = 20
    keep_untracked: bool = False


class Repository(NamedTuple):
    """One entry of the table, see repositories.toml."""

    name: str
    folders: tuple[str, ...] = ()
    upstream: tuple[str, ...] = ()
    branch: str | None = None
    depends: tuple[str, ...] = ()
    optional: bool = False
    project: bool = False
    pins: Mapping[str, str] = {}
    path: str | None = None
    rebuild: str | None = None


class Options(NamedTuple):
    """What the user asked for, beside the repositories."""

    pinned: bool = False
    autostash: bool = False
    bring: str | None = None  # "rebase", "merge"
    fix_remotes: bool = False
    push_fork: bool = False
    keep_untracked: bool = False


class Found(NamedTuple):
    """Where a repository is.

    Attributes:
      path: its folder, with no links in it.
      how: in words, how it was found.
    """

    path: Path
    how: str


class Remote(NamedTuple):
    """A remote as configured.

    Attributes:
      name: such as origin.
      url: as written in the configuration.
      effective: what git and ssh make of it (url.*.insteadOf, host names of ~/.ssh/config).
    """

    name: str
    url: str
    effective: str


class RemoteChoice(NamedTuple):
    """What the remotes of a repository are, judged by the table.

    Attributes:
      official: name of the one that is the upstream; None when there is none.
      fork: name of a remote that is a fork of the upstream; None when there is none.
      problem: what is wrong; empty when nothing is.
      fix: `git remote` arguments that correct it; empty where nothing can be done.
      note: what is odd and yet no hindrance.
    """

    official: str | None
    fork: str | None = None
    problem: str = ""
    fix: tuple[str, ...] = ()
    note: str = ""


class LocalWork(NamedTuple):
    """What is in a checkout that no commit holds, or that is under way.

    Attributes:
      staged, unstaged, conflicted: numbers of files.
      untracked: paths; of a folder with nothing tracked in it the folder alone.
      submodules: paths with what is wrong in each, in words.
      in_progress: such as "rebase".
      locked: lock files, relative to the git folder.
    """

    staged: int = 0
    unstaged: int = 0
    conflicted: int = 0
    untracked: tuple[str, ...] = ()
    submodules: tuple[tuple[str, str], ...] = ()
    in_progress: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()

    def words(self) -> str:
        """All of it in one line; empty when there is nothing."""
        counted = [
            (self.conflicted, "conflicted"),
            (self.staged, "staged"),
            (self.unstaged, "unstaged"),
            (len(self.untracked), "untracked"),
        ]
        parts = [f"{name} in progress" for name in self.in_progress]
        parts += [f"{count} {name}" for count, name in counted if count]
        parts += [f"submodule {path} {what}" for path, what in self.submodules]
        parts += [f"{name} exists" for name in self.locked]
        return ", ".join(parts)


class RepoState(NamedTuple):
    """What was seen of one repository.

    Attributes:
      path: its folder.
      git_dir: where this checkout's HEAD and index are.
      common_dir: where refs and objects are; another folder in a worktree.
      refusal: why this is no repository that can be updated; empty when it can.
      remedy: what a person does about the refusal.
      head: commit; None on a branch without commits.
      branch: current branch; None when detached.
      branches: local branches and their commits.
      elsewhere: local branches that other worktrees have checked out, and where.
      tracking: `refs/remotes/...` of the official remote that were read, and their commits.
      remote_head: the default branch as of the last time the remote was asked, without prefix.
      shallow: whether history is cut off.
      ignore_case: whether names that differ in case alone are one file here.
      local: local work.
      unfinished: the run that was interrupted here and still holds local work; None when none.
      resume: the commit from which submodules have to follow HEAD still, because a run that moved
        HEAD was interrupted; None when there is no such.
    """

    path: Path
    git_dir: Path
    common_dir: Path
    refusal: str = ""
    remedy: tuple[str, ...] = ()
    head: str | None = None
    branch: str | None = None
    branches: Mapping[str, str] = {}
    elsewhere: Mapping[str, str] = {}
    tracking: Mapping[str, str] = {}
    remote_head: str | None = None
    shallow: bool = False
    ignore_case: bool = False
    local: LocalWork = LocalWork()
    unfinished: str | None = None
    resume: str | None = None


class Tip(NamedTuple):
    """The end of the upstream's default branch.

    Attributes:
      branch: without prefix.
      commit: its end; None when neither known here nor asked.
      problem: why it cannot be followed; empty when it can.
      remedy: what a person does about that.
      unreachable: whether the network is the problem.
      note: what should be told.
    """

    branch: str | None
    commit: str | None
    problem: str = ""
    remedy: tuple[str, ...] = ()
    unreachable: bool = False
    note: str = ""


class Relation(NamedTuple):
    """How a commit stands to the one that it should follow.

    Attributes:
      ahead: commits that only the first has.
      behind: commits that only the second has.
      related: whether they have a common ancestor.
      merges: whether what only the first has holds merges.
    """

    ahead: int = 0
    behind: int = 0
    related: bool = True
    merges: bool = False


class Facts(NamedTuple):
    """What is known about one repository when it is planned.

    Attributes:
      state: of the repository.
      choice: of its remotes.
      tip: of the upstream.
      target: commit to follow: the tip or, with pins, what is pinned; None when unknown.
      target_name: in words, such as upstream/main.
      head: how HEAD stands to the target.
      default: how the local default branch stands to it; None when there is no such branch.
      rewritten: whether the upstream's history no longer holds what it held.
      blocked: files that would be overwritten by following, at most the first few.
      pinned: name of the repository that pins the target; empty when it is the tip.
      pin_problem: why a pin cannot be respected.
    """

    state: RepoState
    choice: RemoteChoice
    tip: Tip
    target: str | None = None
    target_name: str = ""
    head: Relation = Relation()
    default: Relation | None = None
    rewritten: bool = False
    blocked: tuple[str, ...] = ()
    pinned: str = ""
    pin_problem: str = ""

    @property
    def target_ref(self) -> str:
        """The target as commands of git name it."""
        return (self.target or "") if self.pinned else self.target_name


class Action(Enum):
    """What is done with the checked-out branch."""

    NOTHING = "nothing"
    FAST_FORWARD = "fast-forward"
    REBASE = "rebase"
    MERGE = "merge"
    SKIP = "skip"


class Step(NamedTuple):
    """What will be done with one repository.

    Attributes:
      action: with what is checked out.
      new: the commit to follow.
      stash: whether local changes are put aside for it.
      default_branch: a local branch that is fast-forwarded although it is not checked out.
      submodules: whether submodules follow.
      reason: why this is so, in words; for SKIP what hinders.
      remedy: commands for a person.
      needs_person: whether somebody has to do something.
      unreachable: whether the network is the reason.
    """

    action: Action
    new: str | None = None
    stash: bool = False
    default_branch: str | None = None
    submodules: bool = False
    reason: str = ""
    remedy: tuple[str, ...] = ()
    needs_person: bool = False
    unreachable: bool = False

    @property
    def does_something(self) -> bool:
        busy = self.action not in (Action.NOTHING, Action.SKIP)
        return busy or self.default_branch is not None or self.submodules


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


class Outcome(NamedTuple):
    """How it ended for one repository.

    Attributes:
      status: in one word.
      reason: in words.
      remedy: commands for a person.
      files: that are in conflict or in the way.
      old, new: commits of HEAD before and after.
      notes: what else should be told.
      needs_person: whether somebody has to do something, although nothing failed.
      unreachable: whether a server could not be reached, although the update needed it not.
    """

    status: Status
    reason: str = ""
    remedy: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    old: str | None = None
    new: str | None = None
    notes: tuple[str, ...] = ()
    needs_person: bool = False
    unreachable: bool = False
