"""What the repositories of one run share, and how a step is done for each of them."""

import errno
import shlex
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scripts.repos import git, journal, network
from scripts.repos.model import Ended, Options, Repo, Settings, Status


class Run:
    """One call of the tool; `places` are the folders of all repositories that are there."""

    def __init__(self, settings: Settings, options: Options, found: Iterable[Repo]):
        self.name = journal.new_run()
        self.settings, self.options = settings, options
        self.places = {repo.name: repo.path for repo in found if repo.found}
        self._records: dict[str, journal.Record] = {}

    def record(self, repo: Repo) -> journal.Record:
        new = journal.Record(repo.name, repo.path, self.name, "update", self.places)
        return self._records.setdefault(repo.name, new)

    @property
    def moved(self) -> bool:
        """Whether there is something to undo."""
        return any(record.changes for record in self._records.values())

    def finish(self, repo: Repo) -> None:
        if repo.name in self._records:
            self._records[repo.name].finish(self.settings.keep_runs)

    def each(self, step: Callable[[Repo], Repo], repos: Iterable[Repo]) -> list[Repo]:
        """Does a step for all repositories that are not at their end; several at once."""

        def one(repo: Repo) -> Repo:
            return guarded(step, repo) if repo.status in (None, Status.PLANNED) else repo

        with ThreadPoolExecutor(self.settings.jobs) as pool:
            return list(pool.map(one, repos))


def unreachable(repo: Repo, error: network.Unreachable) -> Repo:
    """The record at its end, with the call to repeat by hand."""
    again = [repo.command("fetch", repo.official)] if repo.official else []
    return repo.ended(Status.UNREACHABLE, str(error), *again)


def guarded(step: Callable[[Repo], Repo], repo: Repo) -> Repo:
    """Does a step for one repository; whatever goes wrong ends this repository alone."""
    if git.STOP.is_set() and repo.status in (None, Status.PLANNED):
        return repo.skipped("interrupted before it was begun")
    try:
        return step(repo)
    except Ended as end:
        return end.repo
    except BlockingIOError:
        return repo.skipped("another run is at work here", "wait for it to end")
    except network.Unreachable as error:
        return unreachable(repo, error)
    except git.Problem as error:
        return _failed(repo, str(error), isinstance(error, git.DiskFull))
    except OSError as error:
        # Without the number that Python puts before the words.
        reason = ": ".join(filter(None, (error.filename, error.strerror or str(error))))
        return _failed(repo, reason, error.errno in (errno.ENOSPC, errno.EDQUOT))
    except Exception as error:
        # A bug of this tool must not stop the other repositories.
        return _failed(repo, f"internal error, {type(error).__name__}: {error}", False)


def _failed(repo: Repo, reason: str, is_full: bool) -> Repo:
    folder = repo.path if repo.path.is_dir() else Path("/")
    remedy = git.shell_command(folder, "status")
    if is_full:
        reason, remedy = f"the disk is full; {reason}", shlex.join(("df", "-h", str(folder)))
    now, branch = git.commit(folder, "HEAD"), git.branch(folder)
    repo = repo._replace(head=repo.head or now, branch=repo.branch or branch)
    return repo.ended(Status.FAILED, reason, remedy, new=now)
