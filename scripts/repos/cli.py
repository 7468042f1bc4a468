"""The command line: arguments, refusals, commands, exit codes."""

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from scripts.repos import apply, clone, find, freeze, git, journal, report, table, undo
from scripts.repos.model import Options, Repo, Status, UsageError
from scripts.repos.run import Run
from scripts.repos.survey import make_plan

_ABOUT = """\
Updates the local checkouts of PyTorch, torchvision, PyTorch/XLA and this project.
Nothing is lost: files with local changes are never touched, default branches are fast-forwarded
only, and every ref is saved before it moves. Nothing is rebuilt.

  scripts/update_repos.py                    this project's own set of repositories
  scripts/update_repos.py pytorch vision     these
  scripts/update_repos.py -b pytorch         pytorch and all that depend on it
  scripts/update_repos.py --plan             what would be done; fetches
  scripts/update_repos.py status             one table; no network, no change
  scripts/update_repos.py freeze FILE        write the exact commits of all repositories
  scripts/update_repos.py --to FILE          check these commits out again
  scripts/update_repos.py undo               restore all that the latest run changed
  scripts/update_repos.py undo --list        the runs that can be undone
"""
_CODES = """\
exit codes:
  0   all is current, or will be after the plan
  1   manual action is needed; the table says which
  2   wrong usage: arguments, table, git too old, root, inside the development container
  3   a server could not be reached, or refused access; everything else was done
  130 interrupted

The repositories are a table: scripts/repositories.toml, and over it
$XDG_CONFIG_HOME/torch_xla_lite/repositories.toml. --json is stable for other programs:
scripts/repos/report.schema.json describes it.
"""

_DESCRIPTIONS = {
    "update": _ABOUT,
    "status": "Shows all repositories in one table. No network, no change, exit code 0.",
    "freeze": "Writes the commits of repositories to a file that --to reads.",
    "undo": "Restores what a run changed, in all its repositories.\n"
    "Later changes are kept and stop the undo of their repository.",
}
_NEED_A_PERSON = (Status.SKIPPED, Status.FAILED, Status.MISSING)

# Signs of a container. TORCH_XLA_LITE_CONTAINER decides when it is set: 1 in the development
# container, 0 in one that owns the checkouts.
_CONTAINER_VARIABLES = ("REMOTE_CONTAINERS", "CODESPACES", "DEVCONTAINER")
_CONTAINER_FILES = ("/.dockerenv", "/run/.containerenv")


def main(words: Sequence[str], root: Path) -> int:
    """Runs the tool; `root` is this project's checkout. Returns the exit code."""
    parsed = _parse(words)
    _finish_on_interrupt()
    try:
        _check_place(parsed.allow_root, os.environ)
        invocation = _Invocation(parsed, root)
        code = _COMMANDS[parsed.command](invocation)
    except UsageError as error:
        text = f"error: {report.safe(error.problem)}\n{report.safe(error.remedy)}"
        print(text, file=sys.stderr)
        return 2
    if invocation.output.problem:
        print(f"error: the output is not whole: {invocation.output.problem}", file=sys.stderr)
        return code or 1
    return code


def _parse(words: Sequence[str]) -> argparse.Namespace:
    """Reads the command line; the command may stand anywhere in it."""
    rest = list(words)
    command = next((word for word in rest if word in table.COMMANDS), "update")
    if command != "update":
        rest.remove(command)
    parser = argparse.ArgumentParser(
        prog="update_repos.py" if command == "update" else f"update_repos.py {command}",
        description=_DESCRIPTIONS[command],
        epilog=_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=command, names=[], base_repo=None, all=False)
    add = parser.add_argument
    if command == "undo":
        add("run", nargs="?", help="the run to undo (the latest)")
        add("--list", action="store_true", help="list the runs; change nothing")
    else:
        if command == "freeze":
            add("file", type=Path, metavar="FILE", help="the file to write")
        add("names", nargs="*", metavar="NAME", help="repositories of the table")
        add("-b", "--base-repo", metavar="NAME", help="this one and all that depend on it")
        add("-a", "--all", action="store_true", help="all of the table")
    if command == "update":
        _add_update_arguments(parser)
    add("--json", action="store_true", help="print JSON, for other programs")
    add("--config", type=Path, metavar="FILE", help="the user's table")
    add("--project", type=Path, metavar="DIR", help="search around this checkout instead of ours")
    add("--allow-root", action="store_true", help="run although we are root")
    return parser.parse_args(rest)


def _add_update_arguments(parser: argparse.ArgumentParser) -> None:
    how_far = parser.add_mutually_exclusive_group()
    how_far.add_argument("--dry-run", action="store_true", help="plan; no network, no change")
    how_far.add_argument("--plan", action="store_true", help="plan; fetch, change nothing else")
    add = parser.add_mutually_exclusive_group().add_argument
    for name in ("rebase", "merge"):
        words = f"{name} feature branches, too; a conflict changes nothing and is listed"
        add(f"--{name}", dest="integrate", action="store_const", const=name, help=words)
    add("--to", type=Path, metavar="FILE", help="check out the commits that `freeze` wrote")
    for name, words in (
        ("--pinned", "update to what others pin, no further"),
        ("--clone", "clone repositories that are missing"),
        ("--push-fork", "fast-forward the fork's default branch (`fork` in the table), too"),
    ):
        parser.add_argument(name, action="store_true", help=words)
    for *names, kind, metavar, words in (
        ("-j", "--jobs", int, "N", "repositories and submodules worked on at once (8)"),
        ("--timeout", float, "S", "seconds a call to a server may be silent (60)"),
        ("--retries", int, "N", "how often a failed call is tried again (2)"),
    ):
        parser.add_argument(*names, type=kind, metavar=metavar, help=words)


def _check_place(allow_root: bool, environ: Mapping[str, str]) -> None:
    """Refuses to run as root, in the development container, and with a git that is too old."""
    if os.geteuid() == 0 and not allow_root:
        raise UsageError(
            "As root, git would leave files behind that you cannot change.",
            "Run it as yourself; or, where the checkouts are root's:  --allow-root",
        )
    choice = environ.get("TORCH_XLA_LITE_CONTAINER", "")
    variables = [environ.get(name, "").lower() for name in _CONTAINER_VARIABLES]
    is_set = any(word not in ("", "0", "false") for word in variables)
    if choice != "0" if choice else is_set or any(map(os.path.exists, _CONTAINER_FILES)):
        raise UsageError(
            "This is the development container, in which git has other users and no keys.",
            "Run it outside; in a container that owns the checkouts:  TORCH_XLA_LITE_CONTAINER=0",
        )
    version = git.version()
    if version < git.OLDEST:
        found, wanted = (".".join(map(str, v)) for v in (version, git.OLDEST))
        problem = f"git {wanted} or newer is needed, found: {found or 'none'}."
        raise UsageError(problem, "Install a newer git.")


def _finish_on_interrupt() -> None:
    """The first Ctrl-C finishes the current step; the second ends at once."""

    def stop(number: int, _: object) -> None:
        git.STOP.set()
        signal.signal(number, signal.SIG_DFL)
        os.write(2, b"stopping after the current step ...\n")

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


class _Invocation:
    """What all commands share."""

    def __init__(self, parsed: argparse.Namespace, root: Path):
        self.parsed = parsed
        given = {name: getattr(parsed, name, None) for name in ("jobs", "timeout", "retries")}
        self.tables = table.read(parsed.config, os.environ, given)
        self.names = table.select(self.tables, parsed.names, parsed.base_repo, parsed.all)
        self.project = Path(os.path.realpath(parsed.project or root))
        self.output = report.Output(parsed.json, self.project.parent)

    def begin(self, options: Options, names: Iterable[str]) -> tuple[list[Repo], Run]:
        """The records of repositories, and the run."""
        wanted, entries = list(names), self.tables.entries
        found = find.find(entries.values(), self.project, wanted)
        run = Run(self.tables.settings, options, found.values())
        return [found[name] for name in entries if name in wanted], run

    def end(
        self, repos: Sequence[Repo], run: str | None = None, commands: Sequence[str] = ()
    ) -> int:
        """Prints the JSON, if it is wanted; returns the exit code."""
        code = int(any(repo.status in _NEED_A_PERSON or repo.needs_person for repo in repos))
        if any(repo.status is Status.UNREACHABLE or repo.unreachable for repo in repos):
            code = 3
        if git.STOP.is_set():
            code = 130
        rows = [report.as_json(repo) for repo in repos]
        about = {"command": self.parsed.command, "run": run, "exit_code": code}
        self.output.json({**about, "repositories": rows, "next": commands})
        return code


def _update(invocation: _Invocation) -> int:
    parsed, output, tables = invocation.parsed, invocation.output, invocation.tables
    options, names = _options(invocation)
    repos, run = invocation.begin(options, names)
    if parsed.clone:
        repos = clone.missing(repos, parsed.names, invocation.project, run)
    plans = make_plan(repos, tables.entries, run)
    expected = [apply.as_planned(repo) for repo in plans]
    is_work = any(repo.status is Status.PLANNED for repo in expected)
    if not options.acting:
        output.repositories("Plan", "what would be done", expected)
        for repo in expected:
            run.finish(repo)
        code = invocation.end(expected)
        if code == 0 and not is_work:
            asked = "As of the last fetch there is nothing to do; no server was asked. --plan asks."
            output.say("All is current." if options.online else asked)
        return code
    if is_work:
        output.repositories("Plan", "what will be done", expected, details=False)
    done = apply.apply_all(plans, run)
    # One that failed may have moved before.
    moved = any(
        repo.status is Status.UPDATED or (repo.head and repo.new not in (None, repo.head))
        for repo in done
    )
    commands = _rebuild(invocation, done)
    output.repositories("Result", "what was done", done)
    code = invocation.end(done, run.name if moved else None, commands)
    if moved:
        output.say(f"To undo all of it:  scripts/update_repos.py undo {run.name}")
    if commands:
        output.say("Next, inside the development container:")
        for command in commands:
            output.say(f"  {command}")
    elif code == 0:
        is_behind = any(repo.status is Status.KEPT and repo.relation.behind for repo in done)
        output.say(("" if is_behind else "All is current. ") + "There is nothing to rebuild.")
    return code


def _options(invocation: _Invocation) -> tuple[Options, list[str]]:
    """What is asked for, and of which repositories."""
    parsed, names, to = invocation.parsed, invocation.names, None
    if parsed.to is not None:
        if parsed.pinned or parsed.push_fork:
            raise UsageError("--to excludes --pinned and --push-fork.", "Leave one of them out.")
        to = freeze.read(parsed.to, invocation.tables.entries)
        is_chosen = parsed.names or parsed.base_repo or parsed.all
        names = [name for name in to if not is_chosen or name in names]
    online, acting = not parsed.dry_run, not (parsed.dry_run or parsed.plan)
    return Options(online, acting, parsed.integrate, parsed.pinned, to, parsed.push_fork), names


def _rebuild(invocation: _Invocation, repos: Iterable[Repo]) -> list[str]:
    """Commands that rebuild what was updated, and what depends on it."""
    new = {repo.name for repo in repos if repo.status in (Status.UPDATED, Status.CLONED)}
    stale = table.with_dependents(new, invocation.tables.entries.values())
    return [
        f"cd {shlex.quote(str(repo.path))} && {repo.entry.rebuild}"
        for repo in repos
        if repo.name in stale and repo.entry.rebuild and repo.path is not None
    ]


_READING = Options(online=False, acting=False)


def _status(invocation: _Invocation) -> int:
    repos, run = invocation.begin(_READING, invocation.names)
    listed = [apply.as_planned(repo) for repo in make_plan(repos, {}, run)]
    invocation.output.repositories(
        "Status", "as of the last fetch", [repo._replace(files=(), remedy=()) for repo in listed]
    )
    invocation.end(listed)
    return 0


def _freeze(invocation: _Invocation) -> int:
    file, output = invocation.parsed.file, invocation.output
    if file.exists():
        # Not over something that `freeze` did not write.
        freeze.read(file)
    repos, run = invocation.begin(_READING, invocation.names)
    done = run.each(lambda repo: freeze.frozen(repo, run.places.values()), repos)
    # A file that is complete is not replaced by one that is not.
    is_whole = all(repo.status in (Status.CURRENT, Status.ABSENT) for repo in done)
    if is_whole or not file.exists():
        freeze.write(file, done)
    else:
        output.say(f"{file} stays as it was: not all repositories could be frozen.")
    output.repositories(f"Commits in {file}", "commit", done)
    return invocation.end(done)


def _undo(invocation: _Invocation) -> int:
    parsed, output = invocation.parsed, invocation.output
    found = find.find(invocation.tables.entries.values(), invocation.project, ())
    runs = undo.recorded(found.values())
    if parsed.list:
        output.runs([entry for run in reversed(runs) for entry in runs[run]])
        return 0
    run = parsed.run or undo.latest(runs)
    if run is None or run not in runs:
        problem = f"There is no run {parsed.run}." if parsed.run else "There is no run to undo."
        raise UsageError(problem, "See:  scripts/update_repos.py undo --list")
    own = journal.new_run()
    # What depends on others goes back first.
    done = [undo.undo(entry, own) for entry in reversed(runs[run])]
    output.repositories(f"Undo {run}", "what was done", done)
    return invocation.end(done, run)


_COMMANDS = {"update": _update, "status": _status, "freeze": _freeze, "undo": _undo}
