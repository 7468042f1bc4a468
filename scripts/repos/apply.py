"""Carries plans out: old values are saved first, then HEAD moves, then submodules follow."""

import shlex
from collections.abc import Sequence

from scripts.repos import git, inspect, journal, move, obstacles, submodules
from scripts.repos.model import Action, Repo, Settings, Status
from scripts.repos.run import Run, guarded
from scripts.repos.survey import relation


def apply_all(plans: Sequence[Repo], run: Run) -> list[Repo]:
    # With their submodules, too, no more than `jobs` move at once.
    moving = sum(repo.status is Status.PLANNED for repo in plans)
    per_repository = run.settings._replace(jobs=max(1, run.settings.jobs // max(1, moving)))
    return run.each(lambda repo: _apply(repo, run, per_repository), plans)


def _apply(repo: Repo, run: Run, per_repository: Settings) -> Repo:
    if run.options.acting and repo.status is Status.PLANNED:
        with journal.hold(repo.path):
            repo = guarded(lambda one: _update(one, run, per_repository), repo)
    elif run.options.online and repo.action in (Action.REBASE, Action.MERGE):
        with journal.hold(repo.path):
            # A conflict is found in a temporary worktree, and no ref moves.
            repo = guarded(lambda one: move.integrate(one)._replace(new=one.new), repo)
    run.finish(repo)
    return repo


def move_branch(repo: Repo, record: journal.Record, change: journal.Change) -> list[str]:
    """Records and makes a move of the branch that is checked out, with HEAD, index and files."""
    if (git.commit(repo.path, "HEAD"), git.branch(repo.path)) != (change.old, repo.branch):
        raise git.Problem("a new commit or another branch was checked out meanwhile")
    record.add(change)
    return submodules.move_head(repo.path, record, change.old, change.new, repo.branch or "")


def _update(repo: Repo, run: Run, per_repository: Settings) -> Repo:
    """Moves one repository to its target; raises Ended and git.Problem."""
    record = run.record(repo)
    if repo.action in (Action.REBASE, Action.MERGE):
        repo = move.integrate(repo)
    if repo.action is not Action.NOTHING:
        # Again, because other repositories may have been fetched for long since the plan was made.
        obstacles.check(repo, repo.new or "")
        change = journal.Change(f"refs/heads/{repo.branch}", repo.head or "", repo.new or "")
        repo = repo.noting(*move_branch(repo, record, change))
    if repo.move_default:
        name = repo.default_branch or ""
        if name in inspect.refs(repo).elsewhere:
            raise git.Problem(f"{name} was checked out meanwhile")
        moved = journal.Change(f"refs/heads/{name}", repo.branches[name], repo.target or "")
        record.add(moved)
        git.update_refs(repo.path, [moved.line()])
    if repo.target is not None:
        repo = repo._replace(left=relation(repo, repo.new or repo.head or ""))
    problems = submodules.follow(repo.path, record, per_repository)
    if problems:
        # `git submodule update` would overwrite files, and not finish a clone that ended half-way.
        again = shlex.join(("scripts/update_repos.py", repo.name))
        return repo.ended(Status.FAILED, "; ".join(problems), again, new=repo.new)
    return repo._replace(status=Status.UPDATED)
