"""Carries plans out: old values are saved first, then HEAD moves, then submodules follow."""

import shlex
from collections.abc import Sequence

from scripts.repos import filters, git, inspect, journal, move, obstacles, relation, submodules
from scripts.repos.model import Action, Repo, Settings, Status
from scripts.repos.run import Run, guarded


def apply_all(plans: Sequence[Repo], run: Run) -> list[Repo]:
    # With their submodules, too, no more than `jobs` move at once.
    moving = sum(repo.status is Status.PLANNED for repo in plans)
    per_repository = run.settings._replace(jobs=max(1, run.settings.jobs // max(1, moving)))
    return run.each(lambda repo: _apply(repo, run, per_repository), plans, ended=True)


def _apply(repo: Repo, run: Run, per_repository: Settings) -> Repo:
    done = repo
    if run.options.acting and repo.status is Status.PLANNED:
        with journal.hold(repo.path):
            done = guarded(lambda one: _update(one, run, per_repository), repo)
    elif run.options.online and repo.action in (Action.REBASE, Action.MERGE):
        with journal.hold(repo.path):
            # A conflict is found in a temporary worktree, and no ref moves.
            done = guarded(lambda one: move.integrate(one)._replace(new=one.new), repo)
    run.finish(done)
    is_new = done.found == "cloned" and done.status in (Status.CURRENT, Status.UPDATED)
    return done._replace(status=Status.CLONED) if is_new else done


def _update(repo: Repo, run: Run, per_repository: Settings) -> Repo:
    """Moves one repository to its target; raises Ended and git.Problem."""
    record = run.record(repo)
    if repo.action in (Action.REBASE, Action.MERGE):
        repo = move.integrate(repo)
    if repo.action is not Action.NOTHING:
        # Again, because other repositories may have been fetched for long since the plan was made.
        obstacles.check(repo, repo.new or "")
        filters.check(repo, repo.new or "")
        # The branch that is checked out moves, or HEAD alone, which is detached then.
        is_alone = repo.action is Action.DETACH
        kind, ref = ("head", "HEAD") if is_alone else ("ref", f"refs/heads/{repo.branch}")
        change = journal.Change(kind, repo.head, repo.new or "", ref, branch=repo.branch)
        repo = repo.noting(*submodules.move_head(repo.path, record, change))
    if repo.move_default:
        name = repo.default_branch or ""
        if name in inspect.refs(repo).elsewhere:
            raise git.Problem(f"{name} was checked out meanwhile")
        ref, old = f"refs/heads/{name}", repo.branches[name]
        moved = journal.Change("ref", old, repo.target or "", ref)
        record.add(moved)
        git.update_refs(repo.path, [moved.line()])
    if repo.target is not None:
        repo = repo._replace(left=relation.of(repo, repo.new or repo.head or ""))
    problems = submodules.follow(repo.path, record, per_repository)
    if problems:
        # `git submodule update` would overwrite files, and not finish a clone that ended half-way.
        again = shlex.join(("scripts/update_repos.py", repo.name))
        return repo.ended(Status.FAILED, "; ".join(problems), again, new=repo.new)
    return repo._replace(status=Status.UPDATED)
