"""The command line: arguments, refusals, commands, exit codes."""

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from scripts.repos import apply, find, git, journal, report, table, undo
from scripts.repos.model import Repo, Run, Status, UsageError
from scripts.repos.run import guarded
from scripts.repos.survey import make_plan

_ABOUT = """\
Updates the local checkouts of PyTorch, torchvision, PyTorch/XLA and this project.
Nothing is lost: files with local changes are never touched, default branches are fast-forwarded
only, and every branch is saved before it moves. Nothing is rebuilt.

  scripts/update_repos.py                    this project's own set of repositories
  scripts/update_repos.py pytorch vision     these
  scripts/update_repos.py status             one table; no network, no change
  scripts/update_repos.py undo               restore all that the latest run changed
"""
_CODES = """\
exit codes:
  0   all is current, or will be after the plan
  1   manual action is needed; the table says which
  2   wrong usage: arguments, table, root, inside the development container
  3   a server could not be reached, or refused access; everything else was done
  130 interrupted

The repositories are a table: scripts/repositories.toml, and over it
$XDG_CONFIG_HOME/torch_xla_lite/repositories.toml. Fields of --json are not renamed.
"""
# Words of the command line that did something once, and what does it now.
_REMOVED = {
    "freeze": "git -C FOLDER rev-parse HEAD  prints the commit of a repository",
    "--to": "git -C FOLDER switch --detach COMMIT  checks a commit out",
    "--timeout": "git ends a call that is silent for GIT_HTTP_LOW_SPEED_TIME seconds (60)",
    "--retries": "a further run of git fetches what is missing",
    "--clone": "a repository that is missing is listed with its  git clone --recursive",
}
# Signs of a container. TORCH_XLA_LITE_CONTAINER decides when it is set: 1 in the development
# container, 0 in one that owns the checkouts.
_CONTAINER_VARIABLES = ("REMOTE_CONTAINERS", "CODESPACES", "DEVCONTAINER")
_CONTAINER_FILES = ("/.dockerenv", "/run/.containerenv")


def main(words: Sequence[str], root: Path) -> int:
    """Runs the tool; `root` is this project's checkout. Returns the exit code."""
    _finish_on_interrupt()
    try:
        parsed = _parse(words)
        if not parsed.only_reads:
            _check_place(parsed.allow_root, os.environ)
        return getattr(_Call(parsed, root), parsed.command)()
    except UsageError as error:
        lines = map(report.safe, f"error: {error}".split("\n"))
        print("\n".join(lines), file=sys.stderr)
        return 2
    except OSError as error:
        # The disk is full, or the reader of a pipe has ended. Python would try again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"error: the output is not whole: {error}", file=sys.stderr)
        return 1


def _parse(words: Sequence[str]) -> argparse.Namespace:
    """Reads the command line; the command may stand anywhere in it."""
    rest = list(words)
    for name in (word.partition("=")[0] for word in rest):
        if name in _REMOVED:
            raise UsageError(f"{name} was removed: {_REMOVED[name]}")
    command = next((word for word in rest if word in table.COMMANDS), "update")
    if command != "update":
        rest.remove(command)
    parser = argparse.ArgumentParser(
        prog="update_repos.py" if command == "update" else f"update_repos.py {command}",
        description=_ABOUT,
        epilog=_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(command=command, names=[], base_repo=None, all=False)
    add = parser.add_argument
    if command == "undo":
        add("run", nargs="?", help="the run to undo (the latest)")
        add("--list", action="store_true", help="list the runs; change nothing")
    else:
        add("names", nargs="*", metavar="NAME", help="repositories of the table")
        add("-b", "--base-repo", metavar="NAME", help="this one and all that depend on it")
        add("-a", "--all", action="store_true", help="all of the table")
    if command == "update":
        how_far = parser.add_mutually_exclusive_group().add_argument
        how_far("--dry-run", action="store_true", help="plan; no network, no change")
        how_far("--plan", action="store_true", help="plan; fetch, change nothing else")
        where = parser.add_mutually_exclusive_group().add_argument
        for name in ("rebase", "merge"):
            about = f"{name} feature branches, too; a conflict changes nothing and is listed"
            where(f"--{name}", dest="integrate", action="store_const", const=name, help=about)
        add("--pinned", action="store_true", help="update to what others pin, no further")
        jobs, about = range(1, 17), "repositories worked on at once (8)"
        add("-j", "--jobs", type=int, choices=jobs, metavar="N", default=8, help=about)
    add("--json", action="store_true", help="print JSON, for other programs")
    add("--config", type=Path, metavar="FILE", help="the user's table")
    add("--project", type=Path, metavar="DIR", help="search around this checkout instead of ours")
    add("--allow-root", action="store_true", help="run although we are root")
    parsed = parser.parse_args(rest)
    reads = {"update": "dry_run", "undo": "list", "status": "command"}[command]
    parsed.only_reads = bool(getattr(parsed, reads))
    return parsed


def _check_place(allow_root: bool, environ: Mapping[str, str]) -> None:
    """Refuses to change anything as root, and in the development container."""
    if os.geteuid() == 0 and not allow_root:
        raise UsageError(
            "As root, git would leave files behind that you cannot change.\n"
            "Run it as yourself; or, where the checkouts are root's:  --allow-root"
        )
    choice = environ.get("TORCH_XLA_LITE_CONTAINER", "")
    variables = [environ.get(name, "").lower() for name in _CONTAINER_VARIABLES]
    is_set = any(word not in ("", "0", "false") for word in variables)
    if choice != "0" if choice else is_set or any(map(os.path.exists, _CONTAINER_FILES)):
        raise UsageError(
            "This is the development container, in which git has other users and no keys.\n"
            "Run it outside; in a container that owns the checkouts:  TORCH_XLA_LITE_CONTAINER=0"
        )


def _finish_on_interrupt() -> None:
    """The first Ctrl-C finishes the current step; the second ends at once."""

    def stop(number: int, _: object) -> None:
        git.stop()
        signal.signal(number, signal.SIG_DFL)
        os.write(2, b"stopping after the current step ...\n")

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


class _Call:
    """One call of the tool; a method for each command, which returns the exit code."""

    def __init__(self, parsed: argparse.Namespace, root: Path):
        self.parsed = parsed
        tables = table.read(parsed.config, os.environ)
        names = table.select(tables, parsed.names, parsed.base_repo, parsed.all)
        project = Path(os.path.realpath(parsed.project or root))
        self.output = report.Output(parsed.json, project.parent)
        self.entries = tables.entries
        found = find.find(self.entries.values(), project)
        self.found = [repo for repo in found.values() if repo.found]
        self.repos = [found[name] for name in names]
        places = {repo.name: repo.path for repo in self.found}
        self.run = Run(journal.new_run(), places=places)

    def update(self) -> int:
        parsed, say = self.parsed, self.output.say
        fields = ("integrate", "pinned", "jobs")
        run = self.run._replace(**{name: getattr(parsed, name) for name in fields})
        run = run._replace(online=not parsed.dry_run, acting=not (parsed.dry_run or parsed.plan))
        plans = make_plan(self.repos, run, self.entries)
        is_work = any(repo.status is Status.PLANNED for repo in plans)
        if is_work and run.acting:
            self.output.repositories("Plan", "what will be done", plans, details=False)
        done = apply.apply_all(plans, run)
        has_moved = run.acting and any(repo.new != repo.head for repo in done)
        commands = self._rebuild(done)
        if run.acting:
            self.output.repositories("Result", "what was done", done)
        else:
            self.output.repositories("Plan", "what would be done", done)
        code = self._end(done, run.name if has_moved else None, commands)
        if has_moved:
            say(f"To undo all of it:  scripts/update_repos.py undo {run.name}")
        if commands:
            say("Next, inside the development container:")
            for command in commands:
                say(f"  {command}")
        elif code == 0 and not run.online:
            say("No server was asked; --plan asks.")
        elif code == 0 and not is_work:
            say("There is nothing to do.")
        return code

    def status(self) -> int:
        listed = make_plan(self.repos, self.run._replace(online=False, acting=False), {})
        # It only tells: nothing that it finds is an error.
        listed = [repo._replace(files=(), remedy=(), code=0) for repo in listed]
        self.output.repositories("Status", "as of the last fetch", listed)
        return self._end(listed)

    def undo(self) -> int:
        runs = undo.recorded(self.found)
        if self.parsed.list:
            self.output.runs(runs)
            return 0
        run = self.parsed.run or max((run for run in runs if not journal.is_undo(run)), default="")
        if run not in runs:
            problem = f"There is no run {run or 'to undo'}."
            raise UsageError(f"{problem}\nSee:  scripts/update_repos.py undo --list")
        own = self.run._replace(name=journal.new_run(is_undo=True), undoes=run)
        # What depends on others goes back first.
        done = [guarded(undo.undo, repo, own) for repo in reversed(self.found)]
        done = [repo for repo in done if repo.status]
        self.output.repositories(f"Undo {run}", "what was done", done)
        return self._end(done, run)

    def _rebuild(self, repos: Iterable[Repo]) -> list[str]:
        """Commands that rebuild what was updated, and what depends on it."""
        new = {repo.name for repo in repos if repo.status is Status.UPDATED}
        stale = table.with_dependents(new, self.entries.values())
        return [
            f"cd {shlex.quote(str(repo.path))} && {repo.entry.rebuild}"
            for repo in repos
            if repo.name in stale and repo.entry.rebuild and repo.found
        ]

    def _end(
        self, repos: Sequence[Repo], run: str | None = None, commands: Sequence[str] = ()
    ) -> int:
        """Prints the JSON, if it is wanted; returns the exit code."""
        code = 130 if git.STOP.is_set() else max((repo.code for repo in repos), default=0)
        rows = [report.as_json(repo) for repo in repos]
        about = {"command": self.parsed.command, "run": run, "exit_code": code}
        self.output.json({**about, "repositories": rows, "next": commands})
        return code
