"""What each repository is and what is to be done: lock, inspection, remotes, server, fetch, plan.

`make_plan` does it for all repositories of a run.
"""

import shlex
from collections.abc import Iterable, Mapping

from scripts.repos import git, inspect, journal, network, obstacles, plan, remotes
from scripts.repos.model import Action, Ended, Entry, Options, Relation, Repo, Status
from scripts.repos.run import Run


def make_plan(repos: Iterable[Repo], table: Mapping[str, Entry], run: Run) -> list[Repo]:
    """Inspects all repositories, asks their servers, fetches and plans."""
    surveyed = run.each(lambda repo: _survey(repo, run), repos)
    run.progress.clear()
    plans = run.each(lambda repo: _planned(repo, run), surveyed)
    if not run.options.pinned:
        return plans
    known = {repo.name: repo for repo in plans}
    return run.each(lambda repo: _planned(_with_pin(repo, known, table, run), run), surveyed)


def _survey(repo: Repo, run: Run) -> Repo:
    """What a repository is, and what its upstream has; raises Ended, Busy, GitError."""
    repo = inspect.folders(repo)
    if not run.options.online:
        return _surveyed(repo, run)
    with run.locks.acquire(git.common_dir(repo.git_dir)):
        return _surveyed(repo, run)


def _surveyed(repo: Repo, run: Run) -> Repo:
    """As `_survey`, under the lock."""
    records = journal.folder(repo.git_dir)
    if records.exists() and not records.is_dir():
        aside = shlex.join(("mv", str(records), f"{records}.old"))
        raise repo.skip(f"{records} is a file; runs are recorded in a folder there", aside)
    choice = remotes.choose(repo.config, repo.entry, repo.place)
    repo = repo.having(official=choice.official, fork=choice.fork).noting(choice.note)
    repo, tracking = inspect.refs(repo)
    repo = inspect.work(repo, run.places.values())
    if choice.fix and run.options.fix_remotes and run.options.acting:
        repo = _fix_remote(repo, run, choice.fix)
        repo, tracking = inspect.refs(repo)
    elif choice.problem:
        hint = "; --fix-remotes corrects it" if choice.fix else ""
        words = choice.fix or ("add", "upstream", "URL")
        remedy = git.shell_command(repo.place, "remote", *words)
        raise repo.skip(choice.problem + hint, remedy)
    if not run.options.online:
        known = tracking.get(repo.tracking)
        return repo.having(remembered=known, tip=known)
    before = repo.default_branch
    if run.options.to is None:
        repo = _ask(repo, run)
    repo = repo.having(remembered=tracking.get(repo.tracking))
    if repo.tip not in (None, repo.remembered):
        repo = _fetch(repo, run)
    return _with_rename(repo, before)


def _fix_remote(repo: Repo, run: Run, fix: tuple[str, ...]) -> Repo:
    """Corrects or adds the remote that should be the official one; its old address is recorded."""
    verb, name, url = fix
    old = git.run(repo.place, "config", f"remote.{name}.url").out.strip() or None
    run.record(repo).note("remote", name=name, old=old, new=url)
    git.change(repo.place, "remote", verb, name, url)
    return repo.having(official=name).noting(f"remote {name} is now {url}")


def _ask(repo: Repo, run: Run) -> Repo:
    """Asks the server for the end of its default branch."""
    path, remote, wanted = repo.place, repo.official or "", repo.entry.branch
    try:
        default, ends = network.list_branch(path, remote, wanted, run.settings)
    except network.Unreachable as error:
        command = git.shell_command(path, "ls-remote", remote)
        raise _unreachable(repo, f"{remote} cannot be reached: {error}", command) from None
    branch = wanted or default
    if branch is not None and branch in ends:
        return repo.having(default_branch=branch, tip=ends[branch])
    problem, remedy = f"{remote} names no default branch", ()
    if branch:
        problem = f"{remote} has no branch {branch}"
        if default not in (None, branch):
            problem += f"; its default branch is now {default}"
            remedy = _rename(repo, branch, default or "")
    table = f'in the table of repositories: branch = "{default or "..."}"'
    raise repo.skip(problem, table, *remedy)


def _unreachable(repo: Repo, problem: str, *remedy: str) -> Ended:
    return Ended(repo.ended(Status.UNREACHABLE, problem, *remedy, new=repo.head))


def _rename(repo: Repo, old: str, new: str) -> tuple[str, ...]:
    """Commands that follow a default branch to its new name."""
    path, remote = repo.place, repo.official or ""
    track = git.shell_command(path, "branch", "-u", f"{remote}/{new}", new)
    return (
        git.shell_command(path, "branch", "-m", old, new),
        f"{git.shell_command(path, 'fetch', remote)} && {track}",
    )


def _with_rename(repo: Repo, before: str | None) -> Repo:
    """Says so when the server has another default branch than it had."""
    now = repo.default_branch or ""
    if before is None or before == now or before not in repo.branches:
        return repo
    repo = repo.noting(f"the default branch is now {now}, it was {before}")
    if repo.branch == now:
        return repo
    set_head = git.shell_command(repo.place, "remote", "set-head", repo.official or "", now)
    return repo.having(remedy=(*_rename(repo, before, now), set_head), needs_person=True)


def _fetch(repo: Repo, run: Run) -> Repo:
    """Fetches the tip; when acting, the old value of the remote-tracking ref is saved."""
    path, remote, branch = repo.place, repo.official or "", repo.default_branch or ""
    record = run.record(repo) if run.options.acting else None
    if record:
        record.keep([journal.Move(repo.tracking, repo.remembered, repo.tip or "")])
    refspec = f"+refs/heads/{branch}:{repo.tracking}"
    try:
        network.fetch(path, remote, refspec, run.settings, progress=run.progress)
    except network.Unreachable as error:
        command = git.shell_command(path, "fetch", remote, branch)
        problem = f"{branch} could not be fetched from {remote}: {error}"
        raise _unreachable(repo, problem, command) from None
    now = git.commit(path, repo.tracking)
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
        check_obstacles(repo, repo.target or "")
    return repo


def check_obstacles(repo: Repo, new: str) -> None:
    """Raises Ended when something is in the way of the commit that HEAD would move to."""
    plan.check(repo, obstacles.find(repo.place, repo.head or "", new, repo.local))


def _with_pin(repo: Repo, known: Mapping[str, Repo], table: Mapping[str, Entry], run: Run) -> Repo:
    """With the commit to stop at, as the pinning repository will name it after this run.

    That is the first line of its file that is no comment.
    """
    for by, file in [(e.name, e.pins[repo.name]) for e in table.values() if repo.name in e.pins]:
        path, pinning = run.places.get(by), known.get(by)
        if path is None:
            raise _not_pinned(repo, f"{by}, which pins it, was not found")
        if pinning is not None and pinning.status is Status.FAILED:
            raise _not_pinned(repo, pinning.reason)
        moves = pinning is not None and pinning.action is Action.FAST_FORWARD
        commit = (pinning.new if pinning and moves and not pinning.status else None) or "HEAD"
        result = git.run(path, "cat-file", "blob", f"{commit}:{file}")
        if result.code != 0:
            raise _not_pinned(repo, f"{path.name} has no {file}")
        lines = [line.partition("#")[0].strip() for line in result.out.splitlines()]
        named = next((line for line in lines if line), "")
        if not (7 <= len(named) <= 64 and set(named) <= set("0123456789abcdef")):
            raise _not_pinned(repo, f"{file} of {path.name} names no commit")
        repo = repo.having(target=named, pinned_by=by)
    return repo


def _not_pinned(repo: Repo, problem: str) -> Ended:
    return repo.skip(f"no pin: {problem}", "update without --pinned")


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
    if target is None or target == repo.head:
        return repo
    commit = git.commit(repo.place, target)
    if commit is None and options.online and target != repo.tip:
        try:
            network.fetch(repo.place, repo.official or "", target, run.settings)
        except network.Unreachable as error:
            problem = f"{name} cannot be fetched from {repo.official}: {error}"
            is_final = error.refused or options.to is None
            raise (repo.skip(problem) if is_final else _unreachable(repo, problem)) from None
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
