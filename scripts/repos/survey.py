"""What each repository is and what is to be done: lock, inspection, remotes, server, fetch, plan.

`make_plan` does it for all repositories of a run.
"""

import contextlib
from collections.abc import Iterable, Mapping

from scripts.repos import git, inspect, journal, network, obstacles, plan, remotes
from scripts.repos.model import Action, Entry, Options, Relation, Repo, Status
from scripts.repos.run import Run


def make_plan(repos: Iterable[Repo], table: Mapping[str, Entry], run: Run) -> list[Repo]:
    surveyed = run.each(lambda repo: _survey(repo, run), repos)
    plans = run.each(lambda repo: _planned(repo, run), surveyed)
    if not run.options.pinned:
        return plans
    known = {repo.name: repo for repo in plans}
    return run.each(lambda repo: _planned(_with_pin(repo, known, table, run), run), surveyed)


def _survey(repo: Repo, run: Run) -> Repo:
    """What a repository is, and what its upstream has; raises Ended, Busy, GitError."""
    repo = inspect.folder(repo)
    is_online = run.options.online
    lock = journal.hold(repo.place) if is_online else contextlib.nullcontext()
    with lock:
        choice = remotes.choose(git.config(repo.place), repo.entry, repo.place)
        repo = repo._replace(official=choice.official, fork=choice.fork)
        repo = inspect.work(inspect.refs(repo), run.places.values())
        if choice.problem:
            raise repo.skip(choice.problem, repo.command(*choice.remedy))
        if is_online and run.options.to is None:
            repo = _ask(repo, run)
        known = git.commit(repo.place, repo.tracking)
        repo = repo._replace(remembered=known, tip=repo.tip if is_online else known)
        return _fetch(repo, run) if repo.tip not in (None, known) else repo


def _ask(repo: Repo, run: Run) -> Repo:
    """Asks the server for the end of its default branch, and reports that it has another one."""
    remote, before = repo.official or "", repo.default_branch
    default, ends = network.list_branch(repo.place, remote, repo.entry.branch, run.settings)
    branch = repo.entry.branch or default
    renaming = []
    if default and before and before in repo.branches and before not in ends:
        renaming = [repo.command("branch", "-m", before, default)]
        repo = repo.noting(f"the default branch is now {default}, it was {before}")
    if branch is None or branch not in ends:
        table = f'in the table of repositories: branch = "{default or "..."}"'
        missing = f"{remote} has no " + (f"branch {branch}" if branch else "default branch")
        raise repo.skip(missing, table, *renaming)
    if renaming and repo.branch != branch:
        repo = repo._replace(remedy=tuple(renaming), needs_person=True)
    return repo._replace(default_branch=branch, tip=ends[branch])


def _fetch(repo: Repo, run: Run) -> Repo:
    """Fetches the tip; the old value of the remote-tracking ref is saved."""
    record = run.record(repo)
    record.add(journal.Change("ref", repo.remembered, repo.tip or "", repo.tracking))
    refspec = f"+refs/heads/{repo.default_branch}:{repo.tracking}"
    network.fetch(repo.place, repo.official or "", refspec, run.settings)
    now = git.commit(repo.place, repo.tracking)
    if now is not None and now != repo.tip:
        # It moved between asking and fetching.
        record.changes[-1] = record.changes[-1]._replace(new=now)
        record.save()
    return repo._replace(tip=now or repo.tip)


def _planned(repo: Repo, run: Run) -> Repo:
    """The record with its target, its relation to it, and its plan."""
    repo = _with_target(repo, run)
    if repo.target is not None:
        repo = _related(repo, run.options)
    repo = plan.make(repo, run.options)
    if repo.action in (Action.FAST_FORWARD, Action.DETACH):
        obstacles.check(repo, repo.target or "")
    return repo


def _with_pin(repo: Repo, known: Mapping[str, Repo], table: Mapping[str, Entry], run: Run) -> Repo:
    """With the commit to stop at, as the pinning repository will name it after this run.

    That is the first line of its file that is no comment.
    """
    for by, file in [(e.name, e.pins[repo.name]) for e in table.values() if repo.name in e.pins]:
        path, pinning, named = run.places.get(by), known.get(by), ""
        problem = f"{by}, which pins it, was not found"
        if pinning is not None and pinning.status is Status.FAILED:
            problem = pinning.reason
        elif path is not None:
            moves = pinning is not None and pinning.action is Action.FAST_FORWARD
            commit = (pinning.new if pinning and moves and not pinning.status else None) or "HEAD"
            content = git.run(path, "cat-file", "blob", f"{commit}:{file}")
            lines = [line.partition("#")[0].strip() for line in content.out.splitlines()]
            named = next((line for line in lines if line), "")
            problem = f"{file} of {path.name} names no commit"
            if content.code != 0:
                problem = f"{path.name} has no {file}"
        if not (7 <= len(named) <= 64 and set(named) <= set("0123456789abcdef")):
            raise repo.skip(f"no pin: {problem}", "update without --pinned")
        repo = repo._replace(target=named, pinned_by=by)
    return repo


def _with_target(repo: Repo, run: Run) -> Repo:
    options = run.options
    target = options.to[repo.name] if options.to is not None else repo.target or repo.tip
    name = f"{repo.official}/{repo.default_branch}"
    if options.to is not None or repo.pinned_by:
        name = (target or "")[:10] + (f", pinned by {repo.pinned_by}" if repo.pinned_by else "")
    repo = repo._replace(target=target, target_name=name)
    if target in (None, repo.head, repo.tip):
        return repo
    commit = git.commit(repo.place, target)
    if commit is None and options.online:
        try:
            network.fetch(repo.place, repo.official or "", target, run.settings)
        except network.Unreachable as error:
            if error.refused:
                raise repo.skip(str(error)) from None
            raise
        commit = git.commit(repo.place, target) or target
    # A short name of a commit is spelled out.
    return repo._replace(target=commit)


def _related(repo: Repo, options: Options) -> Repo:
    path, target = repo.place, repo.target or ""
    head = inspect.relation(path, repo.head or "", target)
    default, local = None, repo.branches.get(repo.default_branch or "")
    if local is not None and repo.branch != repo.default_branch and options.to is None:
        default = inspect.relation(path, local, target)
    words = ("rev-list", "--count", "HEAD", "--not", "--branches", "--tags", "--remotes")
    own = int(git.ask(path, *words)) if repo.branch is None else 0
    repo = repo._replace(relation=head, default_relation=default, own_commits=own)
    return repo._replace(rewritten=_is_rewritten(repo, [(repo.head, head), (local, default)]))


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
