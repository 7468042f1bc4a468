"""How a step is done for each repository of a run."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scripts.repos import git, network
from scripts.repos.model import Ended, Repo, Run, Status

Step = Callable[[Repo, Run], Repo]


def each(step: Step, repos: Iterable[Repo], run: Run) -> list[Repo]:
    """Does a step for all repositories that are not at their end; several at once."""
    with ThreadPoolExecutor(run.jobs) as pool:
        return list(pool.map(lambda repo: guarded(step, repo, run), repos))


def guarded(step: Step, repo: Repo, run: Run) -> Repo:
    """Does a step for one repository; whatever goes wrong ends this repository alone."""
    if repo.status not in (None, Status.PLANNED):
        return repo
    if git.STOP.is_set():
        return repo.skipped("interrupted before it was begun")
    try:
        return step(repo, run)
    except Ended as end:
        return end.repo
    except BlockingIOError:
        return repo.skipped("another run is at work here", "wait for it to end")
    except network.Unreachable as error:
        again = [repo.command("fetch", repo.official)] if repo.official else []
        return repo.ended(Status.UNREACHABLE, str(error), *again)
    except git.Problem as error:
        return _failed(repo, str(error))
    except OSError as error:
        # Without the number that Python puts before the words.
        words = filter(None, (error.filename, error.strerror or str(error)))
        return _failed(repo, ": ".join(map(str, words)))
    except Exception as error:
        # A bug of this tool must not stop the other repositories.
        return _failed(repo, f"internal error, {type(error).__name__}: {error}")


def _failed(repo: Repo, reason: str) -> Repo:
    folder = repo.path if repo.path.is_dir() else Path("/")
    now, branch = git.commit(folder, "HEAD"), git.branch(folder)
    repo = repo._replace(head=repo.head or now, branch=repo.branch or branch)
    return repo.ended(Status.FAILED, reason, git.shell_command(folder, "status"), new=now)
