"""One repository before anything is done: lock, remotes, server, fetch, inspection, plan.

repo = survey(repo, run)         # what it is; the server was asked, and news were fetched
repo = planned(repo, run, pins)  # how it relates to its target, and what is to be done
"""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from scripts.repos import git, inspect, journal, network, obstacles, plan, remotes, submodules
from scripts.repos.model import Action, Options, Relation, Repo, Settings, Status
from scripts.repos.progress import Progress


class Run:
    """What all repositories of one run share."""

    def __init__(
        self, settings: Settings, options: Options, places: Mapping[str, Path], progress: Progress
    ):
        """Begins a run; `places` are the folders of all repositories that were found."""
        self.name = journal.new_run()
        self.settings, self.options, self.progress = settings, options, progress
        self.places = dict(places)
        self.locks = journal.Locks()
        self._guard = threading.Lock()
        self._records: dict[str, journal.Journal] = {}

    def record(self, repo: Repo) -> journal.Journal:
        """The record of what this run changes in a repository."""
        with self._guard:
            if repo.name not in self._records:
                self._records[repo.name] = journal.Journal(
                    repo.place, repo.git_dir, self.name, self.places, "update"
                )
            return self._records[repo.name]

    def finish(self, repo: Repo) -> None:
        """Ends the record of a repository, if there is one."""
        if repo.name in self._records:
            self._records[repo.name].finish(self.settings.keep_runs)


class Pin(NamedTuple):
    """The commit that a repository pins another one to, or the reason why there is none."""

    by: str
    commit: str = ""
    problem: str = ""


def guarded(step: Callable[[Repo], Repo], repo: Repo) -> Repo:
    """Calls a step for one repository; whatever goes wrong ends this repository alone."""
    try:
        return step(repo)
    except journal.Busy:
        return repo.skipped("another run is at work here", "wait for it to end")
    except network.Unreachable as error:
        return repo.ended(Status.UNREACHABLE, str(error))
    except (git.GitError, OSError) as error:
        reason = str(error)
    except Exception as error:
        # Our own fault. It must not keep the other repositories from being updated.
        reason = f"internal error, {type(error).__name__}: {error}"
    new = git.commit(repo.path, "HEAD") if repo.path and repo.path.is_dir() else None
    return repo.ended(Status.FAILED, reason, new=new)


def survey(repo: Repo, run: Run) -> Repo:
    """What a repository is, and what its upstream has; raises Busy, GitError."""
    try:
        pairs = git.config(repo.place)
    except git.GitError:
        pairs = []
    repo = inspect.folders(repo, dict(pairs))
    if repo.status is not None:
        return repo
    if not run.options.online:
        return _surveyed(repo, run, pairs)
    with run.locks.acquire(repo.common_dir):
        return _surveyed(repo, run, pairs)


def _surveyed(repo: Repo, run: Run, pairs: list[tuple[str, str]]) -> Repo:
    """As `survey`, under the lock; `pairs` are the settings."""
    repo = remotes.choose_into(repo, pairs)
    if repo.fix and run.options.fix_remotes and run.options.acting:
        repo = _fix_remote(repo, run)
    repo, tracking = inspect.refs(repo, dict(pairs))
    if repo.status is not None:
        return repo
    remembered_default = repo.default_branch
    if run.options.online and run.options.to is None and not repo.problem:
        repo = _ask(repo, run.settings)
    repo = repo.having(remembered=tracking.get(repo.tracking))
    if not run.options.online:
        repo = repo.having(tip=repo.remembered)
    elif repo.tip not in (None, repo.remembered):
        repo = _fetch(repo, run)
    repo = inspect.work(repo, (place for place in run.places.values() if place != repo.path))
    if repo.status is None and repo.pending:
        repo = repo.having(pending=submodules.waiting(repo.place, repo.pending))
    return _with_rename(repo, remembered_default)


def _fix_remote(repo: Repo, run: Run) -> Repo:
    """Corrects or adds the remote that should be the official one; its old address is recorded."""
    verb, name, url = repo.fix
    old = git.run(repo.place, "config", f"remote.{name}.url").out.strip() or None
    run.record(repo).note("remote", name=name, old=old, new=url)
    git.change(repo.place, "remote", verb, name, url)
    repo = remotes.choose_into(repo, git.config(repo.place))
    return repo.noting(f"remote {name} is now {url}")


def _ask(repo: Repo, settings: Settings) -> Repo:
    """Asks the server for the end of its default branch."""
    path, remote, wanted = repo.place, repo.official or "", repo.entry.branch
    try:
        default, ends = network.list_branch(path, remote, wanted, settings)
    except network.Unreachable as error:
        command = git.shell_command(path, "ls-remote", remote)
        problem = f"{remote} cannot be reached: {error.problem}"
        return repo.having(problem=problem, remedy=(command,), unreachable=True)
    branch = wanted or default
    if branch is not None and branch in ends:
        return repo.having(default_branch=branch, tip=ends[branch])
    problem, remedy = f"{remote} has no branch {branch}" if branch else "", ()
    if default not in (None, branch):
        problem += f"; its default branch is now {default}"
        remedy = _rename(repo, branch or "", default or "")
    table = f'in the table of repositories: branch = "{default or "..."}"'
    problem = problem or f"{remote} names no default branch"
    return repo.having(problem=problem, remedy=(table, *remedy))


def _rename(repo: Repo, old: str, new: str) -> tuple[str, ...]:
    """Commands that follow a default branch to its new name."""
    path, remote = repo.place, repo.official or ""
    follow = git.shell_command(path, "branch", "-u", f"{remote}/{new}", new)
    return (
        git.shell_command(path, "branch", "-m", old, new),
        f"{git.shell_command(path, 'fetch', remote)} && {follow}",
    )


def _with_rename(repo: Repo, before: str | None) -> Repo:
    """Says so when the server has another default branch than it had."""
    now = repo.default_branch
    if repo.problem or before in (None, now) or before not in repo.branches:
        return repo
    repo = repo.noting(f"the default branch is now {now}, it was {before}")
    if repo.branch == now:
        return repo
    set_head = git.shell_command(repo.place, "remote", "set-head", repo.official or "", now or "")
    remedy = (*_rename(repo, before or "", now or ""), set_head)
    return repo.having(remedy=remedy, needs_person=True)


def _fetch(repo: Repo, run: Run) -> Repo:
    """Fetches the tip; when acting, the old value of the remote-tracking ref is kept."""
    path, remote, branch = repo.place, repo.official or "", repo.default_branch or ""
    record = run.record(repo) if run.options.acting else None
    if record:
        record.keep([journal.Move(repo.tracking, repo.remembered, repo.tip or "")])
    try:
        network.fetch_branch(path, remote, branch, run.settings, run.progress.of(repo.name))
    except network.Unreachable as error:
        problem = f"{branch} could not be fetched from {remote}: {error.problem}"
        command = git.shell_command(path, "fetch", remote, branch)
        return repo.having(problem=problem, remedy=(command,), unreachable=True)
    now = git.commit(path, repo.tracking)
    if record and now is not None and now != repo.tip:
        # It moved between asking and fetching.
        record.changes[-1]["new"] = now
        record.save()
    return repo.having(tip=now or repo.tip)


def planned(repo: Repo, run: Run, pin: Pin | None = None) -> Repo:
    """The record with its target, its relation to it, and its plan; `pin` is where to stop."""
    if repo.status is None and not repo.problem:
        repo = _with_target(repo, run, pin)
    if repo.target is not None:
        repo = _related(repo, run.options)
    repo = plan.make(repo, run.options)
    if repo.status is None and repo.action in (Action.FAST_FORWARD, Action.DETACH):
        repo = plan.blocked(repo, find_obstacles(repo, repo.target or ""))
    return repo


def find_obstacles(repo: Repo, new: str) -> obstacles.Obstacles:
    """What is in the way when HEAD moves to a commit."""
    return submodules.find_obstacles(repo.place, repo.head or "", new, repo.local, repo.ignore_case)


def _with_target(repo: Repo, run: Run, pin: Pin | None) -> Repo:
    options = run.options
    target, name, by = repo.tip, f"{repo.official}/{repo.default_branch}", ""
    if options.to is not None:
        target = options.to[repo.name]
        name = target[:10]
    elif pin is not None:
        if pin.problem:
            return repo.having(
                problem=f"no pin: {pin.problem}", remedy=("update without --pinned",)
            )
        target, by = pin.commit, pin.by
        name = f"{target[:10]}, pinned by {by}"
    repo = repo.having(target=target, target_name=name, pinned_by=by)
    if target is None or target == repo.head or git.known(repo.place, target):
        return repo
    if not options.online or target == repo.tip:
        return repo.having(target=None)
    try:
        network.fetch_commit(repo.place, repo.official or "", target, run.settings)
    except network.Unreachable as error:
        problem = f"{name} cannot be fetched from {repo.official}: {error.problem}"
        unreachable = not error.refused and options.to is not None
        return repo.having(target=None, problem=problem, unreachable=unreachable)
    # A short name of a commit is spelled out.
    return repo.having(target=git.commit(repo.place, target) or target)


def _related(repo: Repo, options: Options) -> Repo:
    path, target = repo.place, repo.target or ""
    head = inspect.relation(path, repo.head or "", target)
    default, local = None, repo.branches.get(repo.default_branch or "")
    if local is not None and repo.branch != repo.default_branch and options.to is None:
        default = inspect.relation(path, local, target)
    own = inspect.own_commits(path) if repo.branch is None else 0
    repo = repo.having(relation=head, default_relation=default, own_commits=own)
    return repo.having(rewritten=_is_rewritten(repo, [(repo.head, head), (local, default)]))


def _is_rewritten(repo: Repo, pairs: list[tuple[str | None, Relation | None]]) -> bool:
    """Whether a local branch has commits that the upstream had once and no longer has."""
    path, tip = repo.place, repo.tip or ""
    for local, relation in pairs:
        if local is None or relation is None or not (relation.ahead and relation.behind):
            continue
        fork_point = git.run(path, "merge-base", "--fork-point", repo.tracking, local)
        for old in (repo.remembered, fork_point.out.strip()):
            base = git.run(path, "merge-base", local, old).out.strip() if old else ""
            if base and tip and inspect.relation(path, base, tip).ahead:
                return True
    return False


def read_pin(path: Path, by: str, commit: str, file: str) -> Pin:
    """What a file of a commit pins: its first line that is no comment."""
    result = git.run(path, "cat-file", "blob", f"{commit}:{file}")
    if result.code != 0:
        return Pin(by, problem=f"{path.name} has no {file}")
    lines = [line.partition("#")[0].strip() for line in result.out.splitlines()]
    named = next((line for line in lines if line), "")
    if is_commit(named):
        return Pin(by, named)
    return Pin(by, problem=f"{file} of {path.name} names no commit")


def is_commit(text: str) -> bool:
    """Whether a text can be the name of a commit."""
    return 7 <= len(text) <= 64 and all(letter in "0123456789abcdef" for letter in text)
