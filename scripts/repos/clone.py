"""--clone: clones repositories that are missing, from the upstream that the table names."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from scripts.repos import find, git, inspect, journal, network, remotes
from scripts.repos.model import Repo, Status
from scripts.repos.run import Run, guarded


def missing(repos: Iterable[Repo], named: Iterable[str], project: Path, run: Run) -> list[Repo]:
    """The records with those that were missing cloned, or with the plan to clone them.

    The records are in dependency order: one may be cloned into another. Optional repositories are
    cloned only when the user `named` them.
    """
    found = []
    for repo in repos:
        is_wanted = repo.status is Status.MISSING or repo.name in named
        if repo.path is None and repo.entry.upstream and is_wanted:
            repo = guarded(lambda one: _clone(one, find.place(one.entry, project), run), repo)
        found.append(repo)
    return found


def _clone(repo: Repo, place: Path, run: Run) -> Repo:
    url = repo.entry.upstream[0]
    if os.path.lexists(place) and not (place.is_dir() and not any(place.iterdir())):
        raise repo.skip(f"in the way of a clone: {place}", "move it elsewhere")
    if not run.options.acting:
        return repo.ended(Status.PLANNED, f"clone {url} into {place}")
    if not place.parent.is_dir():
        raise repo.skip(f"{place.parent}, the folder to clone into, does not exist")
    problem = remotes.rewritten(url, git.config(place.parent), repo.entry)
    if problem:
        raise repo.skip(problem, "git config --get-regexp 'url.*insteadof'")
    # Beside the place first, so that nothing half done is ever at the place.
    beside = place.with_name(f".{place.name}-{run.name}")
    branch = ("--branch", repo.entry.branch) if repo.entry.branch else ()
    words = ("clone", "--progress", *branch, "--", url, str(beside))
    failure = f"{url} cannot be cloned"
    try:
        network.call(place.parent, run.settings, failure, *words)
        # Cloned later, like those that an interrupted run left behind.
        journal.set_pending(beside / ".git", dict.fromkeys(inspect.recorded(beside)))
        beside.rename(place)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    path = run.places[repo.name] = Path(os.path.realpath(place))
    new = Repo(repo.entry, path=path, found="cloned", git_dir=path / ".git", is_cloned=True)
    run.record(new).note("clone")
    return new.noting(f"cloned from {url}")
