"""The phases of an update over all repositories: survey → plan → apply."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from scripts.repos import apply, clone, git, plan
from scripts.repos.model import Action, Entry, Repo, Status
from scripts.repos.survey import Pin, Run, guarded, planned, read_pin, survey


def each(step: Callable[[Repo], Repo], repos: Iterable[Repo], run: Run) -> list[Repo]:
    """Calls a step for all repositories that have not ended, several at once."""
    with ThreadPoolExecutor(run.settings.jobs) as pool:
        tasks = [
            repo if repo.status is not None else pool.submit(guarded, step, repo) for repo in repos
        ]
        return [task if isinstance(task, Repo) else task.result() for task in tasks]


def make_plan(repos: Iterable[Repo], table: Mapping[str, Entry], run: Run) -> list[Repo]:
    """Looks at all repositories, asks their servers, fetches and plans."""
    surveyed = each(lambda repo: survey(repo, run), repos, run)
    run.progress.clear()
    plans = each(lambda repo: planned(repo, run), surveyed, run)
    pins = _pins(plans, table, run) if run.options.pinned else {}
    again = each(
        lambda repo: planned(repo, run, pins[repo.name]),
        [repo for repo in surveyed if repo.name in pins],
        run,
    )
    better = {repo.name: repo for repo in again}
    return [better.get(repo.name, repo) for repo in plans]


def _pins(plans: Iterable[Repo], table: Mapping[str, Entry], run: Run) -> dict[str, Pin]:
    """Repository to its pin, as the pinning repository will be after this run."""
    pins = {}
    known = {repo.name: repo for repo in plans}
    for name, entry in table.items():
        for pinned, file in entry.pins.items():
            repo, path = known.get(name), run.places.get(name)
            if path is None:
                pins[pinned] = Pin(name, problem=f"{name}, which pins it, was not found")
            elif repo is not None and repo.status is Status.FAILED:
                pins[pinned] = Pin(name, problem=repo.reason)
            else:
                moves = repo is not None and repo.action is Action.FAST_FORWARD
                commit = (repo.new if repo and moves and not repo.status else None) or "HEAD"
                pins[pinned] = read_pin(path, name, commit, file)
    return pins


def as_planned(repo: Repo) -> Repo:
    """The end of a repository in a run that only plans."""
    if repo.status is not None or not repo.has_work:
        return apply.without_work(repo)
    return repo.having(status=Status.PLANNED, reason=plan.words(repo))


def apply_all(plans: Iterable[Repo], run: Run) -> list[Repo]:
    """Carries the plans out, one after the other."""
    return [guarded(lambda repo: _apply(repo, run), repo) for repo in plans]


def _apply(repo: Repo, run: Run) -> Repo:
    if git.STOP.is_set() and repo.status is None:
        return repo.skipped("interrupted before it was begun")
    done = guarded(lambda one: apply.apply(one, run), repo)
    if run.options.push_fork and done.official is not None:
        done = apply.push_fork(done, run)
    run.finish(done)
    is_new = done.found == clone.FOUND and done.status in (Status.CURRENT, Status.UPDATED)
    return done.having(status=Status.CLONED) if is_new else done
