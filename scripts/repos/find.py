"""Where each repository is on this machine. Files are read, git is not called.

In this order: where the table says (`path`); at the usual places (`folders`) around this project,
nearest first; by the address of a remote, in the folders around this project. A checkout at a
usual place without a remote that is the upstream is taken only when no other is found, and is
named when another one is taken.
"""

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from scripts.repos import git, urls
from scripts.repos.model import Entry, Repo, Status, UsageError

# Folders around the project that are searched; further up are those of other people.
_LEVELS = 3

# Submodules have addresses, too.
_REMOTE = re.compile(r"(?msi)^\s*\[remote[\s.][^\n]*?\](.*?)(?=^\s*\[|\Z)")
_URL = re.compile(r"(?mi)^\s*url\s*=\s*\"?(.*?)\"?\s*$")


def find(entries: Iterable[Entry], project: Path, wanted: Iterable[str]) -> dict[str, Repo]:
    """A record for each repository, ended where it was not found.

    UsageError is raised when the `path` of a `wanted` one is something else than a repository.
    """
    names = set(wanted)
    return {entry.name: _find(entry, project, entry.name in names) for entry in entries}


def _find(entry: Entry, project: Path, wanted: bool) -> Repo:
    repo, path = Repo(entry), place(entry, project)
    if entry.project or entry.path is not None:
        if git.is_repository(path):
            found = "configured" if entry.path is not None else "this project"
            return repo._replace(path=path, found=found)
        if entry.path is not None and wanted and os.path.lexists(path):
            problem = f"{path}, the path of {entry.name}, is no git repository."
            raise UsageError(problem, "Correct `path` in the table.")
        return _missing(repo, path)
    around = [folder for folder in project.parents[:_LEVELS] if folder != folder.parent]
    places = [Path(os.path.realpath(folder / name)) for folder in around for name in entry.folders]
    usual = [path for path in dict.fromkeys(places) if git.is_repository(path)]
    others: dict[Path, str] = {}
    for one in [*usual, *(_repositories_in(around) if entry.upstream else ())]:
        if _has_upstream(one, entry):
            found = "usual place" if one in usual else "by its remote"
            return repo._replace(path=one, found=found).noting(*others.values())
        if one in usual:
            others[one] = f"{one} is at a usual place too, but no remote of it is the upstream"
    if others:
        return repo._replace(path=next(iter(others)), found="usual place, with other remotes")
    return _missing(repo, path)


def place(entry: Entry, project: Path) -> Path:
    """Where the table says that a repository is, or where it is cloned to when it is missing."""
    if entry.path is not None:
        return Path(os.path.realpath(project / os.path.expanduser(entry.path)))
    return project if entry.project else project.parent / (entry.folders or (entry.name,))[0]


def _missing(repo: Repo, place: Path) -> Repo:
    reason, upstream = "not found around this project", repo.entry.upstream
    if repo.entry.optional:
        return repo.ended(Status.ABSENT, "not here, and optional")
    if not upstream:
        return repo.ended(Status.MISSING, reason, "set `path` or `upstream` in the table")
    words = ("git", "clone", "--recursive", upstream[0], str(place))
    return repo.ended(Status.MISSING, f"{reason}; --clone clones it", shlex.join(words))


def _repositories_in(around: Iterable[Path]) -> Iterator[Path]:
    """The folders around the project, and all folders in them, that are repositories."""
    for folder in around:
        try:
            inner = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())
        except OSError:
            inner = []
        for name in (folder, *inner):
            path = Path(os.path.realpath(name))
            if git.is_repository(path):
                yield path


def _has_upstream(path: Path, entry: Entry) -> bool:
    """Whether a remote is the upstream or the fork; true when the table names no upstream."""
    if not entry.upstream:
        return True
    try:
        config = (git.common_dir(path) / "config").read_text(errors="replace")
    except OSError:
        return False
    addresses = [url for remote in _REMOTE.findall(config) for url in _URL.findall(remote)]
    wanted = (*entry.upstream, *([entry.fork] if entry.fork else []))
    return any(urls.same(url, *wanted, folder=str(path)) for url in addresses)
