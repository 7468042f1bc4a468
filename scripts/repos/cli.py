"""The commands: from arguments to an exit code."""

import argparse
import os
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.repos import arguments, backup, find, git, refusal, report, shown, table
from scripts.repos.model import Options, Outcome, Repository, Settings, Status, UsageError
from scripts.repos.parallel import Task
from scripts.repos.report import Line, Screen
from scripts.repos.update import Planned, Request, Update, as_planned, line

_NEED_A_PERSON = (Status.SKIPPED, Status.FAILED, Status.MISSING)


def main(words: Sequence[str], root: Path) -> int:
    """Runs the tool.

    Args:
      words: the command line.
      root: this project's checkout.

    Returns:
      The exit code.
    """
    # Asked of git while arguments and table are read.
    version = Task(git.version)
    parsed = arguments.parse(words)
    _finish_on_interrupt()
    try:
        refusal.check(parsed.allow_root, os.environ)
        read = table.read(parsed.config, os.environ)
        refusal.check_git(version.result())
        project = Path(os.path.realpath(parsed.project or root))
        if parsed.command == "undo":
            return _undo(parsed, read, project)
        return _update(parsed, read, project)
    except UsageError as error:
        print(f"error: {report.safe(error.problem)}\n{report.safe(error.remedy)}", file=sys.stderr)
        return 2


def _finish_on_interrupt() -> None:
    """The first Ctrl-C lets what is under way come to its end; the second ends at once."""

    def stop(number: int, _: object) -> None:
        git.STOP.set()
        signal.signal(number, signal.SIG_DFL)
        print("stopping after the current step ...", file=sys.stderr)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


def _settings(parsed: argparse.Namespace, settings: Settings) -> Settings:
    if parsed.timeout is not None:
        settings = settings._replace(timeout=parsed.timeout)
    if parsed.retries is not None:
        settings = settings._replace(retries=parsed.retries)
    return settings


def _update(parsed: argparse.Namespace, read: table.Table, project: Path) -> int:
    names = table.select(read, parsed.names, parsed.base_repo, parsed.all)
    settings = _settings(parsed, read.settings)
    request = Request(
        repositories=tuple(read.repositories[name] for name in names),
        table=read.repositories,
        project=project,
        settings=settings,
        options=Options(
            pinned=parsed.pinned,
            bring=parsed.bring,
            fix_remotes=parsed.fix_remotes,
            push_fork=parsed.push_fork,
            keep_untracked=parsed.keep_untracked or settings.keep_untracked,
        ),
        online=not parsed.dry_run,
        acting=not (parsed.dry_run or parsed.plan),
        quiet=parsed.json,
    )
    update = Update(request)
    screen = None if parsed.json else Screen(project)
    looked = update.look(meanwhile=screen.prepare if screen else lambda: None)
    planned = update.plan(update.fetch(looked) if request.online else looked)
    expected = [line(one, as_planned(one)) for one in planned]
    if screen and (not request.acting or _has_work(planned)):
        screen.table("Plan", "what would be done", expected, details=not request.acting)
    if not request.acting:
        return _end(parsed, screen, None, expected, ())
    outcomes = update.apply(planned)
    lines = [line(one, outcome) for one, outcome in zip(planned, outcomes, strict=True)]
    # One that failed may have moved before.
    moved = any(o.status is Status.UPDATED or o.old != o.new for o in outcomes)
    run = update.run if moved else None
    if screen:
        screen.table("Result", "what was done", lines)
    return _end(parsed, screen, run, lines, _next(request.repositories, lines))


def _has_work(planned: Iterable[Planned]) -> bool:
    return any(one.step is not None and one.step.does_something for one in planned)


def _next(repositories: Iterable[Repository], lines: Sequence[Line]) -> list[str]:
    """Commands that rebuild what was updated, and what depends on it."""
    stale = {one.name for one in lines if one.outcome.status is Status.UPDATED}
    places = {one.name: one.path for one in lines}
    commands = []
    for repository in repositories:
        if stale & set(repository.depends):
            stale.add(repository.name)
        if repository.name in stale and repository.rebuild and places[repository.name]:
            commands.append(shown.inside(places[repository.name], repository.rebuild))
    return commands


def _end(
    parsed: argparse.Namespace,
    screen: Screen | None,
    run: str | None,
    lines: Sequence[Line],
    commands: Sequence[str],
) -> int:
    """The last lines, or the JSON; returns the exit code."""
    code = _code([one.outcome for one in lines])
    if screen is None:
        print(report.as_json(parsed.command, run, code, lines, commands))
        return code
    if run is not None and parsed.command == "update":
        screen.say(f"To bring everything back:  scripts/update_repos.py undo {run}")
    if commands:
        screen.say("Next, inside the development container:")
        for command in commands:
            screen.say(f"  {command}", "cyan")
    elif code == 0 and parsed.command == "update" and not _planned(lines):
        screen.say("All is current; there is nothing to rebuild.")
    return code


def _planned(lines: Iterable[Line]) -> bool:
    return any(one.outcome.status is Status.PLANNED for one in lines)


def _code(outcomes: Iterable[Outcome]) -> int:
    if git.STOP.is_set():
        return 130
    all_of_them = list(outcomes)
    if any(o.status is Status.UNREACHABLE or o.unreachable for o in all_of_them):
        return 3
    person = any(o.status in _NEED_A_PERSON or o.needs_person for o in all_of_them)
    return 1 if person else 0


def _undo(parsed: argparse.Namespace, read: table.Table, project: Path) -> int:
    from scripts.repos import undo

    found = find.find(read.repositories.values(), project)
    runs = undo.recorded({name: place.path for name, place in found.items()})
    screen = None if parsed.json else Screen(project)
    if parsed.list:
        return _list(screen, runs)
    run = parsed.run or undo.latest(runs)
    if run is None or run not in runs:
        what = f"There is no run {parsed.run}" if parsed.run else "There is no run to undo"
        raise UsageError(f"{what}.", "See:  scripts/update_repos.py undo --list")
    own = backup.new_run()
    # What depends on others goes back first.
    entries = list(reversed(runs[run]))
    lines = [Line(entry.name, entry.path, undo.undo(entry, own)) for entry in entries]
    if screen:
        screen.table(f"Undo {run}", "what was done", lines)
    return _end(parsed, screen, run, lines, ())


def _list(screen: Screen | None, runs: Mapping[str, Sequence[Any]]) -> int:
    entries = [entry for run in reversed(list(runs)) for entry in runs[run]]
    if screen is None:
        print(report.runs_as_json([entry.record | {"name": entry.name} for entry in entries]))
    else:
        rows = [report.run_row(entry.name, entry.record) for entry in entries]
        screen.runs(rows) if rows else screen.say("No run is remembered.")
    return 0
