"""Where each repository is on this machine. Files are read, git is not called; ssh is asked what
a host is called that a person gave a name of their own.

In this order: where the table says (`path`); at the usual places (`folders`) around this project,
nearest first; by the address of a remote, in the folders around this project. A checkout at a
usual place whose remotes know nothing of the upstream is taken only when no other is found: its
remotes are probably wrong, which is then named.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from scripts.repos import ssh, urls
from scripts.repos.layout import common_dir, git_dir, is_repository
from scripts.repos.model import Found, Repository, UsageError

# Folders around the project that are searched; further up are those of other people.
_LEVELS = 3
# Of a folder with more in it than this nobody keeps checkouts side by side.
_MOST = 400

# Submodules have addresses, too.
_REMOTE = r"(?msi)^\s*\[remote[\s.][^\n]*?\](.*?)(?=^\s*\[|\Z)"
_URL = r"(?mi)^\s*url\s*=\s*\"?(.*?)\"?\s*$"


def find(repositories: Iterable[Repository], project: Path) -> dict[str, Found]:
    """Finds those that are there.

    Args:
      repositories: to find.
      project: this project's checkout.

    Raises:
      UsageError: a `path` of the table leads to no repository.
    """
    found = {}
    for repository in repositories:
        place = _one(repository, project)
        if place is not None:
            found[repository.name] = place
    return found


def _one(repository: Repository, project: Path) -> Found | None:
    if repository.path is not None:
        path = Path(os.path.expanduser(repository.path))
        path = Path(os.path.realpath(project / path))
        if not is_repository(path):
            raise UsageError(
                f"{path}, the path of {repository.name}, is no git repository.",
                "Correct `path` in the table, or clone the repository there.",
            )
        return Found(path, "configured")
    if repository.project:
        path = Path(os.path.realpath(project))
        return Found(path, "this project") if is_repository(path) else None
    doubtful = None
    for path in _usual_places(repository, project):
        if _belongs(path, repository):
            return Found(path, "usual place")
        doubtful = doubtful or path
    for path in _neighbours(project):
        if repository.upstream and _belongs(path, repository):
            return Found(path, "by its remote")
    return Found(doubtful, "usual place, though no remote tells") if doubtful else None


def _around(project: Path) -> list[Path]:
    """The folders around the project, nearest first, without the root of the file system."""
    folders = list(Path(os.path.realpath(project)).parents)[:_LEVELS]
    return [folder for folder in folders if folder != folder.parent]


def _usual_places(repository: Repository, project: Path) -> Iterator[Path]:
    for folder in _around(project):
        for name in repository.folders:
            path = Path(os.path.realpath(folder / name))
            if is_repository(path):
                yield path


def _neighbours(project: Path) -> Iterator[Path]:
    """All repositories in the folders around, and those folders themselves."""
    for folder in _around(project):
        if is_repository(folder):
            yield folder
        try:
            names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
        except OSError:
            continue
        if len(names) > _MOST:
            continue
        for name in names:
            path = Path(os.path.realpath(folder / name))
            if is_repository(path):
                yield path


def _belongs(path: Path, repository: Repository) -> bool:
    """Whether a remote is the upstream, or a fork of it; true when the table names no upstream."""
    if not repository.upstream:
        return True
    known = _urls(path)
    return any(
        urls.same(url, official, str(path)) or urls.is_fork(url, official)
        for url in (ssh.resolved(url, repository.upstream) for url in known)
        for official in repository.upstream
    )


def _urls(path: Path) -> list[str]:
    """Addresses in a repository's own configuration."""
    try:
        config = (common_dir(git_dir(path)) / "config").read_text(errors="replace")
    except OSError:
        return []
    return [url for remote in re.findall(_REMOTE, config) for url in re.findall(_URL, remote)]
