"""Where each repository is on this machine.

In this order: where the table says (`path`); at the usual places (`folders`) around this project,
nearest first; by the address of a remote, in the folders around this project. A checkout at a usual
place without a remote that is the upstream is taken only when no other is found.
"""

import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from scripts.repos import git, remotes
from scripts.repos.model import Entry, Repo, Status

# Folders around the project that are searched; further up are those of other people.
_LEVELS = 3


def find(entries: Iterable[Entry], project: Path) -> dict[str, Repo]:
    """A record for each repository, ended where it was not found."""
    return {entry.name: _find(entry, project) for entry in entries}


def _find(entry: Entry, project: Path) -> Repo:
    path = project if entry.project else project.parent / next(iter(entry.folders), entry.name)
    if entry.path:
        path = Path(os.path.realpath(project / os.path.expanduser(entry.path)))
    repo = Repo(entry, path)
    if entry.project or entry.path:
        if git.is_checkout(path):
            return repo._replace(found="configured" if entry.path else "this project")
        if os.path.lexists(path):
            return repo.ended(Status.MISSING, f"{path} is no checkout", "correct the table")
        return _missing(repo)
    around = [folder for folder in project.parents[:_LEVELS] if folder != folder.parent]
    places = [Path(os.path.realpath(folder / name)) for folder in around for name in entry.folders]
    usual = [path for path in dict.fromkeys(places) if git.is_checkout(path)]
    for one in [*usual, *(_repositories_in(around) if entry.upstream else ())]:
        if _has_upstream(one, entry):
            return repo._replace(path=one, found="usual place" if one in usual else "by its remote")
    if usual:
        return repo._replace(path=usual[0], found="usual place, with other remotes")
    return _missing(repo)


def _missing(repo: Repo) -> Repo:
    upstream = next(iter(repo.entry.upstream), "")
    clone = shlex.join(("git", "clone", "--recursive", upstream, str(repo.path)))
    remedy = clone if upstream else "set `path` or `upstream` in the table"
    if repo.entry.optional:
        return repo.ended(Status.ABSENT, "not here, and optional", remedy)
    return repo.ended(Status.MISSING, "not found around this project", remedy)


def _repositories_in(around: Iterable[Path]) -> Iterator[Path]:
    """The folders around the project, and all folders in them, that are repositories."""
    for folder in around:
        try:
            inner = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())
        except OSError:
            inner = []
        for name in (str(folder), *inner):
            path = Path(os.path.realpath(name))
            if git.is_checkout(path):
                yield path


def _has_upstream(path: Path, entry: Entry) -> bool:
    """Whether a remote is the upstream; true when the table names no upstream."""
    called = remotes.addresses(path).values() if entry.upstream else ()
    return not entry.upstream or any(
        remotes.same(url, *entry.upstream, folder=str(path)) for url in called
    )
