"""What each repository is and what is to be done: lock, inspection, server, fetch, plan."""

import contextlib
import re
from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter

from scripts.repos import git, inspect, journal, move, network, obstacles, plan, remotes
from scripts.repos.model import Action, Ended, Entry, Relation, Repo, Status
from scripts.repos.run import Run, unreachable
from scripts.repos.table import pins


def make_plan(repos: Iterable[Repo], run: Run, table: Mapping[str, Entry]) -> list[Repo]:
    surveyed = {repo.name: repo for repo in run.each(lambda repo: _survey(repo, run), repos)}
    pinned_by = pins(table.values())
    # What pins a repository is planned before it, with its own pin.
    order = TopologicalSorter({name: pinned_by.get(name, ()) for name in surveyed})
    order.prepare()
    done: dict[str, Repo] = {}

    def plan_one(repo: Repo) -> Repo:
        named = [_pin(repo.name, table[by], done, run) for by in pinned_by.get(repo.name, ())]
        if run.options.pinned:
            for pin in named:
                repo = _with_pin(repo, pin)
            return _planned(repo, run)
        repo = _planned(repo, run)
        return _noting_pins(repo, named) if run.options.acting else repo

    while order.is_active():
        level = order.get_ready()
        plans = run.each(plan_one, [surveyed[name] for name in level if name in surveyed])
        done |= {repo.name: repo for repo in plans}
        order.done(*level)
    return [done[name] for name in surveyed]


def _survey(repo: Repo, run: Run) -> Repo:
    """What a repository is, and what its upstream has; raises Ended, GitError, OSError."""
    repo = inspect.folder(repo)
    is_online = run.options.online
    with journal.hold(repo.path) if is_online else contextlib.nullcontext():
        if is_online:
            move.remove_leftovers(repo.path)
        repo, problem = remotes.choose(repo, git.config(repo.path))
        repo = inspect.work(repo, run.places.values())
        if problem:
            raise Ended(repo.skipped(*problem))
        try:
            return _fetched(repo, run)
        except network.Unreachable as error:
            raise Ended(unreachable(repo, error)) from None


def _fetched(repo: Repo, run: Run) -> Repo:
    """The record with the tip of the upstream, which is fetched into its remote-tracking ref."""
    if run.options.online:
        repo = _ask(repo, run)
    known = git.commit(repo.path, repo.tracking)
    repo = repo._replace(remembered=known, tip=repo.tip if run.options.online else known)
    if repo.tip not in (None, known):
        refspec = f"+{repo.tip}:{repo.tracking}"
        network.fetch(repo.path, repo.official or "", refspec, run.settings)
    return repo


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
        raise Ended(repo.skipped(missing, table, *repo.remedy))
    return repo._replace(default_branch=branch, tip=ends[branch])


def _planned(repo: Repo, run: Run) -> Repo:
    """The record with its target, its relation to it, and its plan."""
    repo = _with_target(repo, run)
    if repo.target is not None:
        repo = repo._replace(relation=relation(repo, repo.head or ""))
        local = repo.branches.get(repo.default_branch or "")
        if local is not None and repo.branch != repo.default_branch:
            repo = repo._replace(default_relation=relation(repo, local))
        if repo.branch is None:
            words = ("rev-list", "--count", "HEAD", "--not", "--branches", "--tags", "--remotes")
            repo = repo._replace(own_commits=int(git.ask(repo.path, *words)))
    repo = plan.make(repo, run.options)
    if repo.action is Action.FAST_FORWARD:
        obstacles.check(repo, repo.target or "")
    return repo


def relation(repo: Repo, local: str) -> Relation:
    """How a local commit relates to the target."""
    path, target = repo.path, repo.target or ""
    if local == target:
        return Relation()
    counted = git.ask(path, "rev-list", "--left-right", "--count", f"{local}...{target}")
    ahead, behind = map(int, counted.split())
    if not ahead:
        return Relation(ahead, behind)
    # What the upstream had once, by the ref before this run and by its reflog, and has no longer.
    fork_point = git.run(path, "merge-base", "--fork-point", repo.tracking, local).out.strip()
    olds = filter(None, (repo.remembered, fork_point))
    bases = [git.run(path, "merge-base", local, old).out.strip() for old in olds]
    kept = ("merge-base", "--is-ancestor")
    rewritten = any(base and git.run(path, *kept, base, repo.tip or target).code for base in bases)
    related = git.run(path, "merge-base", local, target).code == 0
    return Relation(ahead, behind, related, rewritten)


def _with_target(repo: Repo, run: Run) -> Repo:
    target = repo.target or repo.tip
    name = repo.target_name or f"{repo.official}/{repo.default_branch}"
    repo = repo._replace(target=target, target_name=name)
    if target in (None, repo.head, repo.tip):
        return repo
    commit = git.commit(repo.path, target)
    if commit is None and run.options.online:
        try:
            network.fetch(repo.path, repo.official or "", target, run.settings)
        except network.Unreachable as error:
            if error.refused:
                raise Ended(repo.skipped(str(error))) from None
            raise
        commit = git.commit(repo.path, target) or target
    # A short name of a commit is spelled out.
    return repo._replace(target=commit)


def _pin(name: str, by: Entry, known: Mapping[str, Repo], run: Run) -> tuple[str, str, str]:
    """The commit that another repository pins after this run, or the problem; and its name.

    That is the first line of the pin file that is not a comment.
    """
    path, pinning, file = run.places.get(by.name), known.get(by.name), by.pins[name]
    if path is None:
        return "", f"{by.name}, which pins it, was not found", by.name
    if pinning is not None and pinning.status is Status.FAILED:
        return "", pinning.reason, by.name
    commit = (pinning and pinning.new) or "HEAD"
    content = git.run(path, "cat-file", "blob", f"{commit}:{file}")
    if content.code != 0:
        return "", f"{path.name} has no {file}", by.name
    lines = [line.partition("#")[0].strip() for line in content.out.splitlines()]
    named = next(filter(None, lines), "")
    problem = f"{file} of {path.name} names no commit"
    return (named, "" if re.fullmatch("[0-9a-f]{7,64}", named) else problem, by.name)


def _with_pin(repo: Repo, pin: tuple[str, str, str]) -> Repo:
    named, problem, by = pin
    if problem:
        raise Ended(repo.skipped(f"no pin: {problem}", "update without --pinned"))
    name = f"{named[:10]}, pinned by {by}"
    return repo._replace(target=named, target_name=name, pinned_by=by)


def _noting_pins(repo: Repo, pinned: Iterable[tuple[str, str, str]]) -> Repo:
    """The record, with a note where it moves past the commit that another repository pins."""
    for named, problem, by in pinned if repo.action is Action.FAST_FORWARD else ():
        counted = git.run(repo.path, "rev-list", "--count", f"{named}..{repo.new}", "--")
        if not problem and counted.code == 0 and counted.out.strip() != "0":
            past = plan.commits(int(counted.out))
            repo = repo.noting(f"{past} past {named[:10]}, which {by} pins; --pinned stops there")
    return repo
