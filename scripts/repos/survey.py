"""What each repository is and what is to be done: lock, inspection, remotes, server, fetch, plan.

`make_plan` does it for all repositories of a run.
"""

import contextlib
import shlex
from collections.abc import Iterable, Mapping

from scripts.repos import git, inspect, journal, network, obstacles, plan, remotes
from scripts.repos.model import Action, Entry, Options, Relation, Repo, Status
from scripts.repos.run import Run


def make_plan(repos: Iterable[Repo], table: Mapping[str, Entry], run: Run) -> list[Repo]:
    """Inspects all repositories, asks their servers, fetches and plans."""
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
    lock = run.locks.hold(git.common_dir(repo.git_dir)) if is_online else contextlib.nullcontext()
    with lock:
        records = journal.folder(repo.git_dir)
        if records.exists() and not records.is_dir():
            aside = shlex.join(("mv", str(records), f"{records}.old"))
            raise repo.skip(f"{records} is a file; runs are recorded in a folder there", aside)
        config = git.config(repo.place)
        choice = remotes.choose(config, repo.entry, repo.place)
        repo = repo.having(official=choice.official, fork=choice.fork).noting(choice.note)
        repo = inspect.work(inspect.refs(repo), run.places.values())
        if choice.fix and run.options.fix_remotes and run.options.acting:
            repo = inspect.refs(_fix_remote(repo, run, dict(config), choice.fix))
        elif choice.problem:
            hint = "; --fix-remotes corrects it" if choice.fix else ""
            words = ("remote", *choice.fix)
            if not choice.fix:
                words = ("config", "--show-origin", "--get-regexp", r"^(remote|url)\.")
            raise repo.skip(choice.problem + hint, repo.command(*words))
        if is_online and run.options.to is None:
            repo = _ask(repo, run)
        known = git.commit(repo.place, repo.tracking)
        repo = repo.having(remembered=known, tip=repo.tip if is_online else known)
        return _fetch(repo, run) if repo.tip not in (None, known) else repo


def _fix_remote(repo: Repo, run: Run, config: Mapping[str, str], fix: tuple[str, ...]) -> Repo:
    """Corrects or adds the remote that should be the official one; its old address is recorded."""
    verb, name, url = fix
    old = config.get(f"remote.{name}.url")
    run.record(repo).note("remote", name=name, old=old, new=url)
    git.change(repo.place, "remote", verb, name, url)
    return repo.having(official=name).noting(f"remote {name} is now {url}")


def _ask(repo: Repo, run: Run) -> Repo:
    """Asks the server for the end of its default branch, and reports that it has another one."""
    remote, wanted, before = repo.official or "", repo.entry.branch, repo.default_branch
    default, ends = network.list_branch(repo.place, remote, wanted, run.settings)
    branch = wanted or default
    renaming: tuple[str, ...] = ()
    if before and default and before != default and before in repo.branches:
        renaming = (repo.command("branch", "-m", before, default),)
    if branch is None or branch not in ends:
        table = f'in the table of repositories: branch = "{default or "..."}"'
        missing = f"branch {branch}" if branch else "default branch"
        problem = f"{remote} has no {missing}"
        if default not in (None, branch):
            problem += f"; its default branch is now {default}"
        raise repo.skip(problem, table, *renaming)
    repo = repo.having(default_branch=branch, tip=ends[branch])
    if not renaming or branch == before:
        return repo
    repo = repo.noting(f"the default branch is now {branch}, it was {before}")
    is_followed = repo.branch == branch
    return repo if is_followed else repo.having(remedy=renaming, needs_person=True)


def _fetch(repo: Repo, run: Run) -> Repo:
    """Fetches the tip; when acting, the old value of the remote-tracking ref is saved."""
    record = run.record(repo) if run.options.acting else None
    if record:
        record.keep([journal.Move(repo.tracking, repo.remembered, repo.tip or "")])
    refspec = f"+refs/heads/{repo.default_branch}:{repo.tracking}"
    network.fetch(repo.place, repo.official or "", refspec, run.settings)
    now = git.commit(repo.place, repo.tracking)
    if record and now is not None and now != repo.tip:
        # It moved between asking and fetching.
        record.changes[-1]["new"] = now
        record.save()
    return repo.having(tip=now or repo.tip)


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
        repo = repo.having(target=named, pinned_by=by)
    return repo


def _with_target(repo: Repo, run: Run) -> Repo:
    options = run.options
    target, name = repo.tip, f"{repo.official}/{repo.default_branch}"
    if options.to is not None:
        target = options.to[repo.name]
        name = target[:10]
    elif repo.target is not None:
        target = repo.target
        name = f"{target[:10]}, pinned by {repo.pinned_by}"
    repo = repo.having(target=target, target_name=name)
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
    return repo.having(target=commit)


def _related(repo: Repo, options: Options) -> Repo:
    path, target = repo.place, repo.target or ""
    head = inspect.relation(path, repo.head or "", target)
    default, local = None, repo.branches.get(repo.default_branch or "")
    if local is not None and repo.branch != repo.default_branch and options.to is None:
        default = inspect.relation(path, local, target)
    words = ("rev-list", "--count", "HEAD", "--not", "--branches", "--tags", "--remotes")
    own = int(git.ask(path, *words)) if repo.branch is None else 0
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
