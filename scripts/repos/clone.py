"""--clone: clones repositories that are missing, from the upstream that the table names."""

import os
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path

from scripts.repos import find, git, inspect, journal, network, remotes
from scripts.repos.model import Repo, Status
from scripts.repos.run import Run


def missing(repos: Iterable[Repo], named: Collection[str], project: Path, run: Run) -> list[Repo]:
    """The records with those that were missing cloned, or with the plan to clone them.

    Optional repositories are cloned only when the user `named` them.
    """
    repos = list(repos)
    by_depth: dict[int, list[Repo]] = {}
    for repo in repos:
        is_wanted = repo.status is Status.MISSING or repo.name in named
        if repo.path is None and repo.entry.upstream and is_wanted:
            by_depth.setdefault(len(find.place(repo.entry, project).parts), []).append(repo)
    done: dict[str, Repo] = {}
    # One may be cloned into another.
    for _, level in sorted(by_depth.items()):
        cloned = run.each(lambda repo: _clone(repo, project, run), level, ended=True)
        done |= {repo.name: repo for repo in cloned}
    return [done.get(repo.name, repo) for repo in repos]


def _clone(repo: Repo, project: Path, run: Run) -> Repo:
    url, place = repo.entry.upstream[0], find.place(repo.entry, project)
    if os.path.lexists(place) and not (place.is_dir() and not any(place.iterdir())):
        raise repo.skip(f"in the way of a clone: {place}", "move it elsewhere")
    if not run.options.acting:
        return repo.ended(Status.PLANNED, f"clone {url} into {place}")
    if not place.parent.is_dir():
        raise repo.skip(f"{place.parent}, the folder to clone into, does not exist")
    problem = remotes.rewritten(url, git.config(place.parent), repo.entry)
    if problem:
        raise repo.skip(problem, "git config --get-regexp 'url.*insteadof'")
    # Beside the place first, so that nothing half done is ever at the place. The name is always the
    # same, so that the next run removes what one that was killed has left.
    aside = place.with_name(f".{place.name}.update-repos")
    aside.mkdir(exist_ok=True)
    with journal.hold(aside):
        try:
            beside = aside / place.name
            shutil.rmtree(beside, ignore_errors=True)
            branch = ("--branch", repo.entry.branch) if repo.entry.branch else ()
            words = ("clone", "--progress", *branch, "--", url, str(beside))
            network.call(place.parent, run.settings, f"{url} cannot be cloned", *words)
            # Cloned later, like those that an interrupted run left behind.
            journal.set_pending(beside, dict.fromkeys(inspect.recorded(beside)))
            beside.rename(place)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    path = run.places[repo.name] = Path(os.path.realpath(place))
    new = Repo(repo.entry, path=path, found="cloned")
    run.record(new).add(journal.Change("clone", None, git.commit(path, "HEAD") or ""))
    return new.noting(f"cloned from {url}")
