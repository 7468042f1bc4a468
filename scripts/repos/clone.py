"""--clone: clones repositories that are missing, from the upstream that the table names."""

import os
import shutil
from collections.abc import Collection, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

from scripts.repos import find, git, inspect, journal, network, remotes
from scripts.repos.model import Repo, Status
from scripts.repos.run import Run, guarded


def missing(repos: Iterable[Repo], named: Collection[str], project: Path, run: Run) -> list[Repo]:
    """The records with those that were missing cloned, or with the plan to clone them.

    Optional repositories are cloned only when the user `named` them.
    """
    started: list[tuple[Path, str, Future[Repo]]] = []
    repos = list(repos)

    def clone(repo: Repo, place: Path, outer: list[Future[Repo]]) -> Repo:
        wait(outer)
        return guarded(lambda one: _clone(one, place, run), repo)

    with ThreadPoolExecutor(run.settings.jobs) as pool:
        for repo in repos:
            is_wanted = repo.status is Status.MISSING or repo.name in named
            if repo.path is None and repo.entry.upstream and is_wanted:
                place = find.place(repo.entry, project)
                # One may be cloned into another, which comes first in the order of dependencies.
                outer = [future for other, _, future in started if other in place.parents]
                started.append((place, repo.name, pool.submit(clone, repo, place, outer)))
    done = {name: future.result() for _, name, future in started}
    return [done.get(repo.name, repo) for repo in repos]


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
    # Beside the place first, so that nothing half done is ever at the place. The name is always the
    # same, so that the next run removes what one that was killed has left.
    aside = place.with_name(f".{place.name}.update-repos")
    aside.mkdir(exist_ok=True)
    with run.locks.hold(aside):
        try:
            beside = aside / place.name
            shutil.rmtree(beside, ignore_errors=True)
            branch = ("--branch", repo.entry.branch) if repo.entry.branch else ()
            words = ("clone", "--progress", *branch, "--", url, str(beside))
            network.call(place.parent, run.settings, f"{url} cannot be cloned", *words)
            # Cloned later, like those that an interrupted run left behind.
            journal.set_pending(beside / ".git", dict.fromkeys(inspect.recorded(beside)))
            beside.rename(place)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    path = run.places[repo.name] = Path(os.path.realpath(place))
    new = Repo(repo.entry, path=path, found="cloned", git_dir=path / ".git", is_cloned=True)
    run.record(new).note("clone")
    return new.noting(f"cloned from {url}")
