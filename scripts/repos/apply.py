"""Carries plans out: old values are saved first, then HEAD moves, then submodules follow.

What moves HEAD are commands of git that refuse to overwrite local work.
"""

import shlex
from collections.abc import Sequence

from scripts.repos import git, inspect, journal, move, network, obstacles, plan, submodules, urls
from scripts.repos.model import Action, Ended, Repo, Settings, Status
from scripts.repos.run import Run, guarded


def as_planned(repo: Repo) -> Repo:
    """The final record of a repository if the run only plans, or the plan changes nothing."""
    if repo.status is not None:
        return repo
    if repo.has_work:
        return repo._replace(status=Status.PLANNED, reason=plan.words(repo))
    is_default = repo.branch == repo.default_branch or repo.head == repo.target
    status = Status.CURRENT if is_default and not repo.needs_person else Status.KEPT
    return repo._replace(status=status, new=repo.head)


def apply_all(plans: Sequence[Repo], run: Run) -> list[Repo]:
    """Carries the plans out, several at once."""
    # With their submodules, too, no more than `jobs` move at once.
    moving = sum(repo.status is None and repo.follow for repo in plans)
    below = run.settings._replace(jobs=max(1, run.settings.jobs // max(1, moving)))
    return run.each(lambda repo: _apply(repo, run, below), plans, ended=True)


def _apply(repo: Repo, run: Run, below: Settings) -> Repo:
    if git.STOP.is_set() and repo.status is None:
        raise repo.skip("interrupted before it was begun")
    done = as_planned(repo)
    if done.status is Status.PLANNED:
        with journal.hold(repo.place):
            done = guarded(lambda one: _update(one, run, below), repo)
    if run.options.push_fork and done.official is not None:
        done = _push_fork(done, run)
    run.finish(done)
    is_new = done.found == "cloned" and done.status in (Status.CURRENT, Status.UPDATED)
    return done._replace(status=Status.CLONED) if is_new else done


def _update(repo: Repo, run: Run, below: Settings) -> Repo:
    """Moves one repository to its target; raises Ended and GitError."""
    record = run.record(repo)
    if repo.action in (Action.REBASE, Action.MERGE):
        repo = move.integrate(repo)
    if repo.action is not Action.NOTHING:
        # Again, because other repositories may have been fetched for long since the plan was made.
        obstacles.check(repo, repo.new or "")
        repo = move_head(repo, record, _change(repo))
    if repo.move_default:
        name = repo.default_branch or ""
        if name in inspect.refs(repo).elsewhere:
            raise _failed(repo, f"{name} was checked out meanwhile")
        ref, old = f"refs/heads/{name}", repo.branches[name]
        moved = journal.Change("ref", old, repo.target or "", ref)
        record.add(moved)
        git.update_refs(repo.place, [moved.line()])
    problems = submodules.follow(repo.place, record, below) if repo.follow else []
    if problems:
        # `git submodule update` would overwrite files, and not finish a clone that ended half-way.
        again = shlex.join(("scripts/update_repos.py", repo.name))
        return repo.ended(Status.FAILED, "; ".join(problems), again, new=repo.new)
    remedy = repo.remedy if repo.needs_person else ()
    return repo.ended(Status.UPDATED, plan.words(repo), *remedy, new=repo.new)


def _change(repo: Repo) -> journal.Change:
    """What moves HEAD: the branch that is checked out, or HEAD alone, which is detached then."""
    if repo.action is Action.DETACH:
        return journal.Change("head", repo.head, repo.new or "", branch=repo.branch)
    return journal.Change("ref", repo.head, repo.new or "", f"refs/heads/{repo.branch}")


def move_head(repo: Repo, record: journal.Record, change: journal.Change) -> Repo:
    """Moves HEAD with index and files."""
    branch = git.branch(repo.place)
    if branch != repo.branch:
        raise _failed(repo, f"another branch was checked out meanwhile: {branch}")
    return repo.noting(*submodules.move_head(repo.place, record, change))


def _failed(repo: Repo, reason: str) -> Ended:
    now = git.commit(repo.place, "HEAD")
    return Ended(repo.ended(Status.FAILED, reason, repo.command("status"), new=now))


def _push_fork(repo: Repo, run: Run) -> Repo:
    """Moves the default branch of the fork that the user named to the upstream's; never forces."""
    if repo.fork is None:
        hint = "name one: `fork` in the table, or git config remote.pushDefault"
        return repo.noting(f"no remote is named as the fork to push to; {hint}")
    try:
        return repo.noting(_push(repo, repo.fork, run))
    except (network.Unreachable, git.GitError, OSError) as error:
        reason = "; ".join(part for part in (repo.reason, f"push: {error}") if part)
        unreachable = isinstance(error, network.Unreachable) and not error.refused
        return repo._replace(reason=reason, needs_person=True, unreachable=unreachable)


def _push(repo: Repo, fork: str, run: Run) -> str:
    """Pushes to the address that the table names, and to no other; returns what was done."""
    commit, branch, named = repo.tip, repo.default_branch, repo.entry.fork
    if commit is None or branch is None:
        raise OSError("the upstream's default branch is not known")
    for url in git.ask(repo.place, "remote", "get-url", "--push", "--all", fork).split("\n"):
        if named not in (None, fork) and not urls.same(url, named or "", folder=str(repo.place)):
            raise OSError(f"{fork} is pushed to {url}, and the table names {named}")
    _, ends = network.list_branch(repo.place, fork, branch, run.settings)
    if ends.get(branch) == commit:
        return ""
    ref = f"refs/remotes/{fork}/{branch}"
    old = git.commit(repo.place, ref)
    run.record(repo).add(journal.Change("ref", old, commit, ref, pushed=fork))
    network.push(repo.place, fork, commit, branch, run.settings)
    return f"{fork}/{branch} is pushed to {commit[:10]}"
