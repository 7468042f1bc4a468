"""--clone: clones repositories that are missing, from the upstream that the table names."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from scripts.repos import find, git, journal, network, remotes, submodules, urls
from scripts.repos.model import Repo, Status
from scripts.repos.survey import Run, guarded

FOUND = "cloned"


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
        return repo.skipped(f"in the way of a clone: {place}", "move it elsewhere")
    if not run.options.acting:
        return repo.ended(Status.PLANNED, f"clone {url} into {place}")
    if not place.parent.is_dir():
        return repo.skipped(f"{place.parent}, the folder to clone into, does not exist")
    called = remotes.effective(url, git.config(place.parent), repo.entry.upstream)
    if not any(urls.same(called, other) for other in repo.entry.upstream):
        words = f"git rewrites {url} to {called} (insteadOf)"
        return repo.skipped(words, "git config --get-regexp 'url.*insteadof'")
    # Beside the place first, so that nothing half done is ever at the place.
    beside = place.with_name(f".{place.name}-{run.name}")
    branch = ("--branch", repo.entry.branch) if repo.entry.branch else ()
    words = ("clone", "--progress", *branch, "--", url, str(beside))
    try:
        tell = run.progress.of(repo.name)
        network.call(place.parent, run.settings, *words, progress=tell)
        # Cloned later, like those that an interrupted run left behind.
        names = submodules.recorded(beside)
        journal.set_pending(beside / ".git", dict.fromkeys(names))
        beside.rename(place)
    except network.Unreachable as error:
        return repo.ended(Status.UNREACHABLE, f"{url} cannot be cloned: {error.problem}")
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    path = Path(os.path.realpath(place))
    run.places[repo.name] = path
    new = Repo(repo.entry, path=path, found=FOUND, git_dir=path / ".git")
    run.record(new).note("clone", url=urls.redact(url, git.SECRETS))
    return new.noting(f"cloned from {url}")
