"""Restores what a run changed: branches, and with them submodules.

What a person did since is not undone with it: a branch that has moved on, or local changes where
the old files would have to come back, stop the undo of that repository before it begins. The
values that undo replaces are saved like those of any run, so an undo can be undone by its own name.
"""

import contextlib
from collections.abc import Iterable

from scripts.repos import git, inspect, journal, move, obstacles, plan, submodules
from scripts.repos.apply import move_branch
from scripts.repos.model import Ended, Repo, Run, Status


def recorded(repos: Iterable[Repo]) -> journal.Runs:
    """All runs, oldest first, with what each changed in each repository, by name."""
    found: journal.Runs = {}
    for repo in repos:
        with contextlib.suppress(OSError, git.Problem):
            for run, change in journal.runs(repo.path).items():
                found.setdefault(run, {})[repo.name] = change
    return dict(sorted(found.items()))


def undo(repo: Repo, run: Run) -> Repo:
    """Undoes a run in one repository; one that it did not change stays without a status."""
    change = journal.runs(inspect.folder(repo).path).get(run.undoes)
    if change is None:
        return repo
    with journal.hold(repo.path):
        move.remove_tree(repo.path)
        return _restored(inspect.work(repo), run, change)


def _restored(repo: Repo, run: Run, change: journal.Change) -> Repo:
    """Undoes a change; raises Ended when that is not possible, before anything is changed."""
    path, new, left = repo.path, repo.head or "", []
    is_moving = git.commit(path, change.ref) != change.old
    if is_moving or repo.pending:
        plan.check_ready(repo)
    if is_moving:
        _check_unmoved(repo, change)
        new = change.old
        obstacles.check(repo, new, is_undo=True)
        made = inspect.recorded(path, change.new).keys() - inspect.recorded(path, new).keys()
        kept = made.difference(inspect.removable(path, change.new, new))
        kept = {name for name in kept if any((path / name).glob("*"))}
        left += [f"submodule {name} has local work and stays" for name in sorted(kept)]
        repo = repo.noting(*move_branch(repo, run, change._replace(old=change.new, new=new)))
    left += submodules.follow_all(repo, run)
    journal.forget(path, run.undoes)
    reason = f"as before {run.undoes}" + (", except what the notes name" if left else "")
    repo = repo.noting(*left)
    return repo.ended(Status.UNDONE, reason, code=int(bool(left)), new=new)


def _check_unmoved(repo: Repo, change: journal.Change) -> None:
    """Raises Ended unless the branch is where the run moved it, and is checked out."""
    name, now = change.ref.removeprefix("refs/heads/"), git.commit(repo.path, change.ref)
    if now != change.new:
        log = repo.command("log", "--oneline", f"{change.old[:10]}..{name}")
        keep = repo.command("branch", f"{name}-before", change.old[:10])
        reason = f"{name} has moved since this run: it is at {(now or 'nothing')[:10]}"
        raise Ended(repo.skipped(reason, log, keep))
    if name != repo.branch:
        raise Ended(repo.skipped(f"{name} is not checked out here", repo.command("switch", name)))
