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

from scripts.repos import urls
from scripts.repos.layout import common_dir, git_dir, is_repository
from scripts.repos.model import Entry, Repo, Status, UsageError

# Folders around the project that are searched; further up are those of other people.
_LEVELS = 3
# A folder with more in it than this is no place where checkouts lie side by side.
_MOST = 400

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
    repo = Repo(entry)
    if entry.path is not None:
        path = place(entry, project)
        if is_repository(path):
            return repo.having(path=path, found="configured")
        if wanted and os.path.lexists(path):
            raise UsageError(
                f"{path}, the path of {entry.name}, is no git repository.",
                "Correct `path` in the table.",
            )
        return _missing(repo, project)
    if entry.project:
        path = Path(os.path.realpath(project))
        if is_repository(path):
            return repo.having(path=path, found="this project")
        reason = f"{project} is no git repository"
        return repo.ended(Status.MISSING, reason, "set `path` in the table")
    others = []
    for path in _usual_places(entry, project):
        if _has_upstream(path, entry):
            return _at(repo, path, "usual place", others)
        others.append(path)
    for path in _neighbours(project) if entry.upstream else ():
        if path not in others and _has_upstream(path, entry):
            return _at(repo, path, "by its remote", others)
    if others:
        return repo.having(path=others[0], found="usual place, with other remotes")
    return _missing(repo, project)


def place(entry: Entry, project: Path) -> Path:
    """Where the table says that a repository is, or where it is cloned to when it is missing."""
    if entry.path is not None:
        return Path(os.path.realpath(project / os.path.expanduser(entry.path)))
    return project.parent / (entry.folders or (entry.name,))[0]


def _missing(repo: Repo, project: Path) -> Repo:
    entry = repo.entry
    if entry.optional:
        return repo.ended(Status.ABSENT, "not here, and optional")
    if not entry.upstream:
        reason = "not found around this project"
        return repo.ended(Status.MISSING, reason, "set `path` or `upstream` in the table")
    words = ("git", "clone", "--recursive", entry.upstream[0], str(place(entry, project)))
    reason = "not found around this project; --clone clones it"
    return repo.ended(Status.MISSING, reason, shlex.join(words))


def _at(repo: Repo, path: Path, found: str, others: Iterable[Path]) -> Repo:
    notes = [
        f"{other} is at a usual place too, but no remote of it is the upstream" for other in others
    ]
    return repo.having(path=path, found=found).noting(*notes)


def _around(project: Path) -> list[Path]:
    """The folders around the project, nearest first, without the root of the file system."""
    folders = list(Path(os.path.realpath(project)).parents)[:_LEVELS]
    return [folder for folder in folders if folder != folder.parent]


def _usual_places(entry: Entry, project: Path) -> list[Path]:
    places = [
        Path(os.path.realpath(folder / name))
        for folder in _around(project)
        for name in entry.folders
    ]
    return [path for path in dict.fromkeys(places) if is_repository(path)]


def _neighbours(project: Path) -> Iterator[Path]:
    """All repositories in the folders around, and those folders themselves."""
    for folder in _around(project):
        if is_repository(folder):
            yield folder
        try:
            names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
        except OSError:
            continue
        for name in names if len(names) <= _MOST else ():
            path = Path(os.path.realpath(folder / name))
            if is_repository(path):
                yield path


def _has_upstream(path: Path, entry: Entry) -> bool:
    """Whether a remote is the upstream or the user's fork; true when the table names neither."""
    wanted = [*entry.upstream, *([entry.fork] if entry.fork else [])]
    if not entry.upstream:
        return True
    known = [urls.resolved(url, wanted) for url in _urls(path)]
    return any(urls.same(url, other, str(path)) for url in known for other in wanted)


def _urls(path: Path) -> list[str]:
    """Addresses in a repository's own configuration."""
    try:
        config = (common_dir(git_dir(path)) / "config").read_text(errors="replace")
    except OSError:
        return []
    return [url for remote in _REMOTE.findall(config) for url in _URL.findall(remote)]
