"""What each repository is and what is to be done: lock, inspection, server, fetch, plan."""

import contextlib
import re
from collections.abc import Collection, Iterable, Mapping
from graphlib import TopologicalSorter
from pathlib import Path

from scripts.repos import (
    git,
    inspect,
    journal,
    move,
    network,
    obstacles,
    plan,
    relation,
    relocate,
    remotes,
)
from scripts.repos.model import Action, Ended, Entry, Repo, Status
from scripts.repos.run import Run, unreachable
from scripts.repos.table import pins


def make_plan(repos: Iterable[Repo], run: Run, table: Mapping[str, Entry]) -> list[Repo]:
    surveyed = {repo.name: repo for repo in run.each(lambda repo: _survey(repo, run), repos)}
    pinned_by = pins(table.values()) if run.options.pinned else {}
    order = TopologicalSorter({name: pinned_by.get(name, ()) for name in surveyed})
    order.prepare()
    done: dict[str, Repo] = {}

    def plan_one(repo: Repo) -> Repo:
        target = _with_pin(repo, done, table, run) if run.options.pinned else repo
        return _planned(target, run)

    while order.is_active():
        # What pins these is planned by now, with its own pin.
        level = order.get_ready()
        plans = run.each(plan_one, [surveyed[name] for name in level if name in surveyed])
        done |= {repo.name: repo for repo in plans}
        order.done(*level)
    plans = [done[name] for name in surveyed]
    is_default = run.options.acting and not run.options.pinned and run.options.to is None
    return [_noting_pins(repo, done, table, run) for repo in plans] if is_default else plans


def _survey(repo: Repo, run: Run) -> Repo:
    """What a repository is, and what its upstream has; raises Ended, GitError, OSError."""
    repo = inspect.folder(repo)
    is_online = run.options.online
    lock = journal.hold(repo.path) if is_online else contextlib.nullcontext()
    with lock:
        if is_online:
            move.remove_leftovers(repo.path)
            relocate.repair(repo.path)
            inspect.wait_for_locks(repo.path)
        repo = remotes.choose(repo, git.config(repo.path))
        repo = inspect.work(repo, run.places.values())
        if repo.official is None:
            raise repo.skip(repo.reason, *repo.remedy)
        try:
            return _fetched(repo, run)
        except network.Unreachable as error:
            # With what is known of it by now.
            raise Ended(unreachable(repo, error)) from None


def _fetched(repo: Repo, run: Run) -> Repo:
    """The record with the tip of the upstream, which is fetched into its remote-tracking ref."""
    is_online = run.options.online
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
        repo = repo._replace(relation=relation.of(repo, repo.head or ""))
        local = repo.branches.get(repo.default_branch or "")
        if local is not None and repo.branch != repo.default_branch and run.options.to is None:
            repo = repo._replace(default_relation=relation.of(repo, local))
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
    for by in pins(table.values()).get(repo.name, ()):
        named, problem = _pin(repo.name, table[by], known, run)
        if problem:
            raise repo.skip(f"no pin: {problem}", "update without --pinned")
        name = f"{named[:10]}, pinned by {by}"
        repo = repo._replace(target=named, target_name=name, pinned_by=by)
    return repo


def _noting_pins(
    repo: Repo, known: Mapping[str, Repo], table: Mapping[str, Entry], run: Run
) -> Repo:
    """The record, with a note where it moves past the commit that another repository pins."""
    for by in pins(table.values()).get(repo.name, ()) if repo.action is Action.FAST_FORWARD else ():
        named, problem = _pin(repo.name, table[by], known, run)
        counted = git.run(repo.path, "rev-list", "--count", f"{named}..{repo.new}", "--")
        if not problem and counted.code == 0 and counted.out.strip() != "0":
            past = plan.commits(int(counted.out))
            words = f"{past} past {named[:10]}, which {by} pins; --pinned stops there"
            repo = repo.noting(words)
    return repo


def _pin(name: str, by: Entry, known: Mapping[str, Repo], run: Run) -> tuple[str, str]:
    """The commit that another repository pins after this run, or the problem."""
    path, pinning, file = run.places.get(by.name), known.get(by.name), by.pins[name]
    if pinning is not None and pinning.status is Status.FAILED:
        return "", pinning.reason
    if path is None:
        return "", f"{by.name}, which pins it, was not found"
    commit = (pinning and pinning.new) or "HEAD"
    content = git.run(path, "cat-file", "blob", f"{commit}:{file}")
    if content.code != 0:
        return "", f"{path.name} has no {file}"
    lines = [line.partition("#")[0].strip() for line in content.out.splitlines()]
    named = next(filter(None, lines), "")
    is_commit = re.fullmatch("[0-9a-f]{7,64}", named)
    return (named, "") if is_commit else ("", f"{file} of {path.name} names no commit")


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
