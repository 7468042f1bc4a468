"""Carries plans out: old values are saved first, then HEAD moves, then submodules follow."""

import shlex
from collections.abc import Sequence

from scripts.repos import git, inspect, journal, move, network, obstacles, remotes, submodules
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
    if run.options.acting and run.options.push_fork and done.official is not None:
        done = _push_fork(done, run)
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
    problems = submodules.follow(repo.path, record, per_repository)
    if problems:
        # `git submodule update` would overwrite files, and not finish a clone that ended half-way.
        again = shlex.join(("scripts/update_repos.py", repo.name))
        return repo.ended(Status.FAILED, "; ".join(problems), again, new=repo.new)
    return repo._replace(status=Status.UPDATED)


def _push_fork(repo: Repo, run: Run) -> Repo:
    """Moves the default branch of the fork that the user named to the upstream's; never forces."""
    if repo.fork is None:
        hint = "name one: `fork` in the table, or git config remote.pushDefault"
        return repo.noting(f"no remote is named as the fork to push to; {hint}")
    try:
        return repo.noting(_push(repo, repo.fork, run))
    except (git.Problem, OSError) as error:
        reason = "; ".join(part for part in (repo.reason, f"push: {error}") if part)
        code = 3 if isinstance(error, network.Unreachable) and not error.refused else 1
        return repo._replace(reason=reason, code=max(code, repo.code))


def _push(repo: Repo, fork: str, run: Run) -> str:
    """Pushes to the address that the table names, and to no other; returns what was done."""
    commit, branch, named = repo.tip, repo.default_branch, repo.entry.fork
    if commit is None or branch is None:
        raise git.Problem("the upstream's default branch is not known")
    for url in git.ask(repo.path, "remote", "get-url", "--push", "--all", fork).split("\n"):
        if named and named != fork and not remotes.same(url, named, folder=str(repo.path)):
            raise git.Problem(f"{fork} is pushed to {url}, and the table names {named}")
    _, ends = network.list_branch(repo.path, fork, branch, run.settings)
    if ends.get(branch) == commit:
        return ""
    ref = f"refs/remotes/{fork}/{branch}"
    old = git.commit(repo.path, ref)
    run.record(repo).add(journal.Change("ref", old, commit, ref, pushed=fork))
    # Without +: the server refuses what is not forward.
    words = ("push", "--progress", "--porcelain", "--no-follow-tags", "--recurse-submodules=no")
    refspec, failure = f"{commit}:refs/heads/{branch}", f"{fork}/{branch} did not take it"
    network.call(repo.path, run.settings, failure, *words, fork, refspec)
    return f"{fork}/{branch} is pushed to {commit[:10]}"
