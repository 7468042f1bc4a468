"""The phases of an update: look → plan → fetch → apply, over all repositories."""

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from scripts.repos import apply, backup, find, git, plan
from scripts.repos.model import (
    Action,
    Facts,
    Found,
    Options,
    Outcome,
    Repository,
    Settings,
    Status,
    Step,
)
from scripts.repos.parallel import Task, each
from scripts.repos.progress import Bars
from scripts.repos.report import Line
from scripts.repos.survey import Survey, read_pin

# What stops one repository, and not the others: git, another run, files that cannot be written.
_HINDRANCES = (git.GitError, backup.Busy, OSError)


class Request(NamedTuple):
    """What is asked for.

    Attributes:
      repositories: those to update, in dependency order.
      table: all there are; some of those not to update pin others.
      project: this project's checkout.
      settings: numbers.
      options: what is done.
      online: whether servers are asked.
      acting: whether anything is done; otherwise it is only planned.
      quiet: whether no progress is shown.
    """

    repositories: tuple[Repository, ...]
    table: Mapping[str, Repository]
    project: Path
    settings: Settings
    options: Options
    online: bool
    acting: bool
    quiet: bool


class Planned(NamedTuple):
    """One repository between planning and acting; `seen` is None when it was not found."""

    repository: Repository
    found: Found | None
    seen: Survey | None
    facts: Facts | None
    step: Step | None
    problem: Outcome | None = None


class Update:
    """One run."""

    def __init__(self, request: Request):
        self.request = request
        self.run = backup.new_run()
        wanted = {repository.name: repository for repository in request.repositories}
        if request.options.pinned:
            for repository in request.table.values():
                if set(repository.pins) & set(wanted):
                    wanted.setdefault(repository.name, repository)
        self.found = find.find(wanted.values(), request.project)
        self._peers = [(name, place.path) for name, place in self.found.items()]

    def look(self, meanwhile: Callable[[], object]) -> list[Planned]:
        """Looks at all repositories, and asks their servers meanwhile.

        Args:
          meanwhile: is called while the servers are waited for.
        """
        # All are asked before anything else is begun, which would delay the last answer.
        asking = [(r, Task(self._ask, r)) for r in self.request.repositories]
        for _, task in asking:
            task.wait()
        meanwhile()
        looking = [(r, Task(self._look, task)) for r, task in asking]
        return [self._looked(repository, task) for repository, task in looking]

    def _ask(self, repository: Repository) -> Survey | None:
        found = self.found.get(repository.name)
        if found is None:
            return None
        request = self.request
        others = [path for name, path in self._peers if name != repository.name]
        seen = Survey(repository, found, request.settings, others, request.online)
        if seen.choice.fix and request.options.fix_remotes and request.acting:
            seen.look()
            self._open(seen)
            if not seen.state.refusal:
                seen.fix_remote()
        seen.ask()
        return seen

    def _look(self, asked: "Task[Survey | None]") -> Survey | None:
        seen = asked.result()
        if seen is not None:
            seen.look()
            self._open(seen)
        return seen

    def _open(self, seen: Survey) -> None:
        if self.request.acting and seen.journal is None and not seen.state.refusal:
            git_dir = seen.state.git_dir
            seen.journal = backup.Journal(seen.path, git_dir, self.run, self._peers)

    def _looked(self, repository: Repository, task: "Task[Survey | None]") -> Planned:
        found = self.found.get(repository.name)
        try:
            seen = task.result()
        except _HINDRANCES as error:
            return Planned(repository, found, None, None, None, _problem(error))
        problem = None if seen is not None else _missing(repository, self.request.project)
        return Planned(repository, found, seen, None, None, problem)

    def fetch(self, looked: list[Planned]) -> list[Planned]:
        """Gets what is missing, from all servers at once."""
        with Bars(self.request.quiet) as bars:

            def one(planned: Planned) -> Planned:
                if planned.seen is None:
                    return planned
                try:
                    if planned.seen.is_behind:
                        planned.seen.fetch(bars.of(planned.repository.name))
                except _HINDRANCES as error:
                    return planned._replace(seen=None, problem=_problem(error))
                return planned

            return each(one, looked, self.request.settings.jobs)

    def plan(self, looked: list[Planned]) -> list[Planned]:
        """Plans all, from what is known now."""
        options = self.request.options
        pins = self._pins(looked) if options.pinned else {}

        def one(planned: Planned) -> Planned:
            if planned.seen is None:
                return planned
            try:
                facts = planned.seen.facts(pins, options)
            except _HINDRANCES as error:
                return planned._replace(seen=None, problem=_problem(error))
            return planned._replace(facts=facts, step=plan.make(facts, options))

        return each(one, looked, self.request.settings.jobs)

    def _pins(self, looked: list[Planned]) -> dict[str, tuple[str, str]]:
        """Repository to who pins it, and to what: as the pinning one will be after this run."""
        pins = {}
        seen = {p.repository.name: p.seen for p in looked if p.seen is not None}
        for name, repository in self.request.table.items():
            for pinned, file in repository.pins.items():
                if name in seen:
                    pins[pinned] = (name, self._pin(seen[name], file))
                elif name in self.found:
                    pins[pinned] = (name, read_pin(self.found[name].path, "HEAD", file))
                else:
                    pins[pinned] = (name, f"{name}, which pins it, was not found")
        return pins

    def _pin(self, seen: Survey, file: str) -> str:
        try:
            facts = seen.facts({}, self.request.options)
        except _HINDRANCES as error:
            return str(error)
        step = plan.make(facts, self.request.options)
        moves = step.action is Action.FAST_FORWARD
        return read_pin(seen.path, (step.new if moves else facts.state.head) or "HEAD", file)

    def apply(self, planned: list[Planned]) -> list[Outcome]:
        """Carries the plans out, one by one."""
        outcomes = []
        for one in planned:
            outcome = self._apply(one)
            try:
                self._close(one, outcome)
            except _HINDRANCES as error:
                outcome = outcome._replace(notes=(*outcome.notes, str(error)), needs_person=True)
            outcomes.append(outcome)
        return outcomes

    def _close(self, one: Planned, outcome: Outcome) -> None:
        """Ends the record of a repository, and forgets old ones."""
        journal = one.seen.journal if one.seen is not None else None
        if journal is not None and journal.changes:
            if outcome.status is not Status.FAILED:
                journal.finish()
            backup.expire(journal.path, journal.git_dir, self.request.settings.keep_runs)
            journal.release()

    def _apply(self, one: Planned) -> Outcome:
        if one.seen is None or one.facts is None or one.step is None:
            assert one.problem is not None
            return one.problem
        if git.STOP.is_set():
            return Outcome(Status.SKIPPED, "interrupted before it was begun")
        try:
            if one.step.does_something:
                outcome = apply.apply(one.seen, one.facts, self.request.options)
            else:
                outcome = apply.without_work(one.seen, one.facts, one.step)
            return apply.push_fork(one.seen, outcome) if self.request.options.push_fork else outcome
        except _HINDRANCES as error:
            return _problem(error)


def _problem(error: Exception) -> Outcome:
    if isinstance(error, backup.Busy):
        return Outcome(Status.SKIPPED, "another run is at work here", ("wait for it to end",))
    return Outcome(Status.FAILED, str(error))


def _missing(repository: Repository, project: Path) -> Outcome:
    if repository.optional:
        return Outcome(Status.ABSENT, "not here, and not needed")
    if not repository.upstream:
        return Outcome(Status.MISSING, f"{project} is no git repository", ("set `path`",))
    folder = project.parent / (repository.folders or (repository.name,))[0]
    command = shlex.join(["git", "clone", "--recursive", repository.upstream[0], str(folder)])
    return Outcome(Status.MISSING, "not found around this project", (command,))


def as_planned(one: Planned) -> Outcome:
    """The outcome of a run that ends with the plan."""
    if one.seen is None or one.facts is None or one.step is None:
        assert one.problem is not None
        return one.problem
    outcome = apply.without_work(one.seen, one.facts, one.step)
    if not one.step.does_something:
        return outcome
    words = plan.words(one.step, one.facts)
    return outcome._replace(status=Status.PLANNED, reason=words, new=one.step.new)


def line(one: Planned, outcome: Outcome) -> Line:
    """One repository of the report."""
    if one.seen is None or one.facts is None:
        path = one.found.path if one.found else None
        return Line(one.repository.name, path, outcome, one.found.how if one.found else "")
    return Line(
        one.repository.name,
        one.seen.path,
        outcome,
        one.found.how if one.found else "",
        one.facts.state.branch,
        one.facts.tip.branch,
        one.facts.choice.official,
        one.facts.head,
        one.facts.state.local,
    )
