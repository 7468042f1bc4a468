"""Where each repository is on this machine; --clone clones those that are missing.

Files are read to find them; git is called only where settings say that other files count. In this
order: where the table says (`path`); at the usual places (`folders`) around this project, nearest
first; by the address of a remote, in the folders around this project. A checkout at a usual place
without a remote that is the upstream is taken only when no other is found, and is named when
another one is taken.
"""

import functools
import os
import re
import shlex
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from scripts.repos import git, inspect, journal, network, remotes
from scripts.repos.model import Entry, Repo, Status, UsageError
from scripts.repos.run import Run

# Folders around the project that are searched; further up are those of other people.
_LEVELS = 3

# Submodules have addresses, too.
_REMOTE = re.compile(r"(?msi)^\s*\[remote[\s.][^\n]*?\](.*?)(?=^\s*\[|\Z)")
# Settings by which an address is not what this file says.
_ELSEWHERE = re.compile(r"(?i)insteadof|^\s*\[include|worktreeconfig", re.MULTILINE)
_URL = re.compile(r"(?mi)^\s*url\s*=\s*\"?(.*?)\"?\s*$")


def find(entries: Iterable[Entry], project: Path, wanted: Collection[str]) -> dict[str, Repo]:
    """A record for each repository, ended where it was not found.

    UsageError is raised when the `path` of a `wanted` one is something else than a repository.
    """
    return {entry.name: _find(entry, project, entry.name in wanted) for entry in entries}


def _find(entry: Entry, project: Path, wanted: bool) -> Repo:
    path = _place(entry, project)
    repo = Repo(entry, path)
    if entry.project or entry.path is not None:
        if git.is_repository(path):
            found = "configured" if entry.path is not None else "this project"
            return repo._replace(found=found)
        if entry.path is not None and wanted and os.path.lexists(path):
            problem = f"{path}, the path of {entry.name}, is no git repository."
            raise UsageError(problem, "Correct `path` in the table.")
        return _missing(repo)
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
    return _missing(repo)


def _place(entry: Entry, project: Path) -> Path:
    """Where the table says that a repository is, or where it is cloned to when it is missing."""
    if entry.path is not None:
        return Path(os.path.realpath(project / os.path.expanduser(entry.path)))
    return project if entry.project else project.parent / (entry.folders or (entry.name,))[0]


def _missing(repo: Repo) -> Repo:
    reason, upstream = "not found around this project", repo.entry.upstream
    if repo.entry.optional:
        return repo.ended(Status.ABSENT, f"not here, and optional; --clone {repo.name} clones it")
    if not upstream:
        return repo.ended(Status.MISSING, reason, "set `path` or `upstream` in the table")
    words = ("git", "clone", "--recursive", upstream[0], str(repo.path))
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
    wanted = (*entry.upstream, *([entry.fork] if entry.fork else []))
    return any(remotes.same(url, *wanted, folder=str(path)) for url in _addresses(path))


@functools.cache
def _addresses(path: Path) -> list[str]:
    """The addresses of all remotes of a repository, as git calls them."""
    try:
        config = (git.common_dir(path) / "config").read_text(errors="replace")
    except OSError:
        return []
    if _ELSEWHERE.search(config) or _rewrites():
        return [*remotes.addresses(git.config(path)).values()]
    return [url for remote in _REMOTE.findall(config) for url in _URL.findall(remote)]


@functools.cache
def _rewrites() -> bool:
    """Whether the settings of the user or the machine can change an address."""
    return any(re.match("include|url.*insteadof$", key) for key, _ in git.config(Path("/")))


def clone_missing(repos: Sequence[Repo], named: Collection[str], run: Run) -> list[Repo]:
    """The records with those that were missing cloned, or with the plan to clone them.

    Optional repositories are cloned only when the user `named` them.
    """
    wanted = [repo for repo in repos if repo.status is Status.MISSING or repo.name in named]
    absent = [repo for repo in wanted if not repo.found and repo.entry.upstream]
    done = {repo.name: repo for repo in repos}
    # One may be cloned into another.
    for depth in sorted({len(repo.path.parts) for repo in absent}):
        level = [repo for repo in absent if len(repo.path.parts) == depth]
        cloned = run.each(lambda repo: _clone(repo, run), level, ended=True)
        done |= {repo.name: repo for repo in cloned}
    return list(done.values())


def _clone(repo: Repo, run: Run) -> Repo:
    url, place = repo.entry.upstream[0], repo.path
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
    new = Repo(repo.entry, path, found="cloned")
    run.record(new).add(journal.Change("clone", None, git.commit(path, "HEAD") or ""))
    return new.noting(f"cloned from {url}")
