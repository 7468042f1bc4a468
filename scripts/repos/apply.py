"""Carries plans out: old values are saved first, then HEAD moves, then submodules follow."""

import shlex
from collections.abc import Sequence

from scripts.repos import git, journal, move, obstacles, submodules
from scripts.repos.model import Action, Repo, Run, Status
from scripts.repos.run import guarded


def apply_all(plans: Sequence[Repo], run: Run) -> list[Repo]:
    """One after the other: submodules of one repository already move several at once."""
    return [guarded(_apply, repo, run) for repo in plans]


def _apply(repo: Repo, run: Run) -> Repo:
    if repo.status is not Status.PLANNED or not run.online:
        return repo
    with journal.hold(repo.path):
        if run.acting:
            return _update(repo, run)
        if repo.action in (Action.REBASE, Action.MERGE):
            move.integrate(repo)  # A conflict is found in a temporary worktree, and no ref moves.
        return repo


def move_branch(repo: Repo, run: Run, change: journal.Change) -> list[str]:
    """Records and makes a move of the branch that is checked out, with HEAD, index and files."""
    if (git.commit(repo.path, "HEAD"), git.branch(repo.path)) != (change.old, repo.branch):
        raise git.Problem("a new commit or another branch was checked out meanwhile")
    journal.save(repo.path, run.name, change)
    try:
        return submodules.move_head(repo.path, run, change.old, change.new, repo.branch or "")
    except git.Problem:
        if git.commit(repo.path, "HEAD") == change.old:
            journal.forget(repo.path, run.name)
        raise


def _update(repo: Repo, run: Run) -> Repo:
    """Moves one repository to its target; raises Ended and git.Problem."""
    if repo.action in (Action.REBASE, Action.MERGE):
        repo = move.integrate(repo)
    if repo.action is not Action.NOTHING:
        # Again, because other repositories may have been fetched for long since the plan was made.
        obstacles.check(repo, repo.new or "")
        change = journal.Change(f"refs/heads/{repo.branch}", repo.head or "", repo.new or "")
        repo = repo.noting(*move_branch(repo, run, change))
        repo = repo._replace(relation=repo.relation._replace(behind=0))
    problems = submodules.follow_all(repo, run)
    if problems:
        # `git submodule update` would overwrite files, and not finish a clone that ended half-way.
        again = shlex.join(("scripts/update_repos.py", repo.name))
        return repo.ended(Status.FAILED, "; ".join(problems), again, new=repo.new)
    return repo._replace(status=Status.UPDATED)
