"""What each repository is and what is to be done: lock, inspection, server, fetch, plan."""

import contextlib
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from scripts.repos import git, inspect, journal, network, obstacles, plan, remotes
from scripts.repos.model import Action, Entry, Relation, Repo, Status
from scripts.repos.run import Run


def make_plan(repos: Iterable[Repo], run: Run, table: Mapping[str, Entry]) -> list[Repo]:
    surveyed = run.each(lambda repo: _survey(repo, run), repos)
    plans = run.each(lambda repo: _planned(repo, run), surveyed)
    if not run.options.pinned:
        return plans
    known = {repo.name: repo for repo in plans}
    return run.each(lambda repo: _planned(_with_pin(repo, known, table, run), run), surveyed)


def _survey(repo: Repo, run: Run) -> Repo:
    """What a repository is, and what its upstream has; raises Ended, GitError, OSError."""
    repo = inspect.folder(repo)
    is_online = run.options.online
    lock = journal.hold(repo.path) if is_online else contextlib.nullcontext()
    with lock:
        repo = remotes.choose(repo, git.config(repo.path))
        repo = inspect.work(repo, run.places.values())
        if repo.official is None:
            raise repo.skip(repo.reason, *repo.remedy)
        if is_online and run.options.to is None:
            repo = _ask(repo, run)
        known = git.commit(repo.path, repo.tracking)
        repo = repo._replace(remembered=known, tip=repo.tip if is_online else known)
        if repo.tip not in (None, known):
            run.record(repo).add(journal.Change("ref", known, repo.tip or "", repo.tracking))
            refspec = f"+{repo.tip}:{repo.tracking}"
            network.fetch(repo.path, repo.official or "", refspec, run.settings)
        return repo


def frozen(repo: Repo, others: Collection[Path]) -> Repo:
    """The final record of a repository if `freeze` writes its commit; raises Ended, GitError."""
    repo = inspect.work(inspect.folder(repo), others)
    if repo.local.describe():
        repo = repo.noting(f"local work is not in the file: {repo.local.describe()}")
    if not inspect.is_published(repo.path):
        repo = repo.noting("its commit is on no remote branch; others cannot fetch it")
    return repo.ended(Status.CURRENT, f"at {(repo.head or '')[:10]}")


def _ask(repo: Repo, run: Run) -> Repo:
    """Asks the server for the tip of its default branch; reports a renamed default branch."""
    remote, before = repo.official or "", repo.default_branch
    default, ends = network.list_branch(repo.path, remote, repo.entry.branch, run.settings)
    branch = repo.entry.branch or default
    if default and before in repo.branches and before not in ends:
        repo = repo.noting(f"the default branch is now {default}, it was {before}")
        if repo.branch != default:
            rename = repo.command("branch", "-m", before or "", default)
            repo = repo._replace(remedy=(rename,), code=1)
    if branch is None or branch not in ends:
        table = f'in the table of repositories: branch = "{default or "..."}"'
        missing = f"{remote} has no " + (f"branch {branch}" if branch else "default branch")
        raise repo.skip(missing, table, *repo.remedy)
    return repo._replace(default_branch=branch, tip=ends[branch])


def _planned(repo: Repo, run: Run) -> Repo:
    """The record with its target, its relation to it, and its plan."""
    repo = _with_target(repo, run)
    if repo.target is not None:
        repo = repo._replace(relation=_relation(repo, repo.head or ""))
        local = repo.branches.get(repo.default_branch or "")
        if local is not None and repo.branch != repo.default_branch and run.options.to is None:
            repo = repo._replace(default_relation=_relation(repo, local))
        if repo.branch is None:
            words = ("rev-list", "--count", "HEAD", "--not", "--branches", "--tags", "--remotes")
            repo = repo._replace(own_commits=int(git.ask(repo.path, *words)))
    repo = plan.make(repo, run.options)
    if repo.action in (Action.FAST_FORWARD, Action.DETACH):
        obstacles.check(repo, repo.target or "")
    return repo


def _with_pin(repo: Repo, known: Mapping[str, Repo], table: Mapping[str, Entry], run: Run) -> Repo:
    """Sets the target to the commit that the pinning repository names after this run.

    That is the first line of the pin file that is not a comment.
    """
    for by, file in [(e.name, e.pins[repo.name]) for e in table.values() if repo.name in e.pins]:
        path, pinning, named = run.places.get(by), known.get(by), ""
        problem = f"{by}, which pins it, was not found"
        if pinning is not None and pinning.status is Status.FAILED:
            problem = pinning.reason
        elif path is not None:
            commit = (pinning and pinning.new) or "HEAD"
            content = git.run(path, "cat-file", "blob", f"{commit}:{file}")
            lines = [line.partition("#")[0].strip() for line in content.out.splitlines()]
            named = next(filter(None, lines), "")
            problem = f"{file} of {path.name} names no commit"
            if content.code != 0:
                problem = f"{path.name} has no {file}"
        if not re.fullmatch("[0-9a-f]{7,64}", named):
            raise repo.skip(f"no pin: {problem}", "update without --pinned")
        name = f"{named[:10]}, pinned by {by}"
        repo = repo._replace(target=named, target_name=name, pinned_by=by)
    return repo


def _with_target(repo: Repo, run: Run) -> Repo:
    given = (run.options.to or {}).get(repo.name)
    target = given or repo.target or repo.tip
    name = repo.target_name or f"{repo.official}/{repo.default_branch}"
    repo = repo._replace(target=target, target_name=given[:10] if given else name)
    if target in (None, repo.head, repo.tip):
        return repo
    commit = git.commit(repo.path, target)
    if commit is None and run.options.online:
        try:
            network.fetch(repo.path, repo.official or "", target, run.settings)
        except network.Unreachable as error:
            if error.refused:
                raise repo.skip(str(error)) from None
            raise
        commit = git.commit(repo.path, target) or target
    # A short name of a commit is spelled out.
    return repo._replace(target=commit)


def _relation(repo: Repo, local: str) -> Relation:
    """How a local branch relates to the target."""
    path, target = repo.path, repo.target or ""
    if local == target:
        return Relation()
    counted = git.ask(path, "rev-list", "--left-right", "--count", f"{local}...{target}")
    ahead, behind = map(int, counted.split())
    if not ahead or not behind:
        return Relation(ahead, behind)
    related = git.run(path, "merge-base", local, target).code == 0
    merges = git.ask(path, "rev-list", "--count", "--merges", f"{target}..{local}") != "0"
    fork_point = git.run(path, "merge-base", "--fork-point", repo.tracking, local).out.strip()
    olds = filter(None, (repo.remembered, fork_point))
    bases = [git.run(path, "merge-base", local, old).out.strip() for old in olds]
    is_kept = ("merge-base", "--is-ancestor")
    rewritten = any(
        base and git.run(path, *is_kept, base, repo.tip or target).code for base in bases
    )
    return Relation(ahead, behind, related, merges, rewritten)
