"""What each repository is and what is to be done: lock, inspection, server, fetch, plan."""

import re
from collections.abc import Iterable, Mapping
from functools import partial

from scripts.repos import git, inspect, journal, move, network, obstacles, plan, remotes
from scripts.repos.model import Action, Ended, Entry, Relation, Repo, Run, Status
from scripts.repos.run import each, guarded


def make_plan(repos: Iterable[Repo], run: Run, table: Mapping[str, Entry]) -> list[Repo]:
    """What is to be done with each of the repositories, which are in the order of the table."""
    done: dict[str, Repo] = {}
    surveyed = each(_fetched, each(_survey, repos, run), run)
    # What pins a repository is planned before it, with its own pin.
    for repo in reversed(surveyed):
        done[repo.name] = guarded(partial(_with_pins, table=table, done=done), repo, run)
    return [done[repo.name] for repo in surveyed]


def _with_pins(repo: Repo, run: Run, table: Mapping[str, Entry], done: Mapping[str, Repo]) -> Repo:
    """The repository with its plan, which follows the last of its pins if that is asked for."""
    pins = [_pin(repo.name, by, done, run) for by in table.values() if repo.name in by.pins]
    for commit, problem, by in pins if run.pinned else ():
        if problem:
            raise Ended(repo.skipped(f"no pin: {problem}", "update without --pinned"))
        name = f"{commit[:10]}, pinned by {by}"
        repo = repo._replace(target=commit, target_name=name, pinned_by=by)
    repo = _planned(repo, run)
    moves_past = repo.action is Action.FAST_FORWARD and run.acting and not run.pinned
    for commit, problem, by in pins if moves_past else ():
        counted = git.run(repo.path, "rev-list", "--count", f"{commit}..{repo.new}", "--")
        if not problem and counted.code == 0 and counted.out.strip() != "0":
            past = plan.commits(int(counted.out))
            repo = repo.noting(f"{past} past {commit[:10]}, which {by} pins; --pinned stops there")
    return repo


def _survey(repo: Repo, run: Run) -> Repo:
    """What a repository is; raises Ended, GitError, OSError."""
    repo = inspect.folder(repo)
    if run.online:
        with journal.hold(repo.path):
            move.remove_tree(repo.path)
    repo, problem = remotes.choose(repo, remotes.addresses(repo.path))
    repo = inspect.work(repo)
    if problem:
        raise Ended(repo.skipped(*problem))
    return repo


def _fetched(repo: Repo, run: Run) -> Repo:
    """The record with the tip of the upstream, which is fetched into its remote-tracking ref."""
    remote, branch = repo.official or "", repo.default_branch
    set_head = repo.command("remote", "set-head", remote, "--auto")
    ask = f"{repo.command('fetch', remote)} && {set_head}"
    if branch is None:
        raise Ended(repo.skipped(f"the default branch of {remote} is not known", ask))
    known = git.commit(repo.path, repo.tracking)
    try:
        if run.online:
            with journal.hold(repo.path):
                network.fetch(repo.path, remote, f"+refs/heads/{branch}:{repo.tracking}")
    except network.Unreachable as error:
        if "couldn't find remote ref" not in str(error):
            raise
        table = "set `branch` in the table of repositories to the one that it names"
        raise Ended(repo.skipped(f"{remote} has no branch {branch}", ask, table)) from None
    tip = git.commit(repo.path, repo.tracking) if run.online else known
    return repo._replace(remembered=known, tip=tip)


def _planned(repo: Repo, run: Run) -> Repo:
    """The record with its target, its relation to it, and its plan."""
    name = repo.target_name or f"{repo.official}/{repo.default_branch}"
    repo = repo._replace(target=_target(repo, run), target_name=name)
    if repo.target is not None:
        repo = repo._replace(relation=_relation(repo, repo.target, repo.head or ""))
    repo = plan.make(repo, run)
    if repo.action is Action.FAST_FORWARD:
        obstacles.check(repo, repo.target or "")
    return repo


def _target(repo: Repo, run: Run) -> str | None:
    """The commit to follow: the tip, or a pin, which is fetched where it is not here."""
    target = repo.target or repo.tip
    if target in (None, repo.head, repo.tip):
        return target
    if git.commit(repo.path, target) is None and run.online:
        try:
            network.fetch(repo.path, repo.official or "", target)
        except network.Unreachable as error:
            # The server has just answered: it has no such commit.
            raise Ended(repo.skipped(str(error))) from None
    # A short name of a commit is spelled out.
    return git.commit(repo.path, target)


def _relation(repo: Repo, target: str, head: str) -> Relation:
    """How HEAD relates to the target."""
    path = repo.path
    if head == target:
        return Relation()
    counted = git.ask(path, "rev-list", "--left-right", "--count", f"{head}...{target}")
    ahead, behind = map(int, counted.split())
    if not ahead:
        return Relation(ahead, behind)
    # What the upstream had once, by the ref before this run and by its reflog, and has no longer.
    fork_point = git.run(path, "merge-base", "--fork-point", repo.tracking, head).out.strip()
    olds = filter(None, (repo.remembered, fork_point))
    bases = [git.run(path, "merge-base", head, old).out.strip() for old in olds]
    kept = ("merge-base", "--is-ancestor")
    rewritten = any(base and git.run(path, *kept, base, repo.tip or target).code for base in bases)
    return Relation(ahead, behind, rewritten)


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
