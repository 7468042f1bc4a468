"""What people see, and what programs read.

The JSON (`--json`) is stable: `schema` is "update-repos/1", and a change that could break a reader
changes the number. report.schema.json has it in full:

    {"schema": "update-repos/1", "command": "update", "run": "20261121T123456-123456",
     "exit_code": 0, "repositories": [{"name": "pytorch", "status": "updated", ...}], "next": []}
"""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scripts.repos import git, urls
from scripts.repos.model import LocalWork, Outcome, Relation, Status

SCHEMA = "update-repos/1"

_STYLES = {
    Status.CURRENT: "green",
    Status.UPDATED: "bold green",
    Status.UNDONE: "bold green",
    Status.PLANNED: "cyan",
    Status.KEPT: "green",
    Status.SKIPPED: "yellow",
    Status.FAILED: "bold red",
    Status.UNREACHABLE: "red",
    Status.MISSING: "yellow",
    Status.ABSENT: "dim",
}

# Columns that are never broken into lines.
_SHORT = ("repository", "branch", "↑↓", "run", "state")


class Line(NamedTuple):
    """One repository in a report.

    Attributes:
      name: in the table.
      path: where it is; None when it was not found.
      found: how it was found.
      branch: checked out; None when detached or unknown.
      default_branch: of the upstream.
      remote: the official one.
      relation: of HEAD to the upstream, before anything was done.
      local: local work.
      outcome: how it ended.
    """

    name: str
    path: Path | None
    outcome: Outcome
    found: str = ""
    branch: str | None = None
    default_branch: str | None = None
    remote: str | None = None
    relation: Relation = Relation()
    local: LocalWork = LocalWork()


def safe(text: str) -> str:
    """A text that may be shown: no credentials, no control characters, no half characters."""
    text = urls.redact(text, git.SECRETS)
    text = "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
    return text.encode("utf-8", "replace").decode("utf-8")


def as_json(
    command: str, run: str | None, code: int, lines: Iterable[Line], commands: Sequence[str]
) -> str:
    """The report for programs."""
    content = {
        "schema": SCHEMA,
        "command": command,
        "run": run,
        "exit_code": code,
        "repositories": [_line_as_json(line) for line in lines],
        "next": list(commands),
    }
    return _dumped(content)


def _dumped(content: Mapping[str, Any]) -> str:
    import json

    return json.dumps(_safe_values(content), indent=2)


def _line_as_json(line: Line) -> dict[str, Any]:
    outcome, local = line.outcome, line.local
    return {
        "name": line.name,
        "path": None if line.path is None else os.fsdecode(line.path),
        "found": line.found,
        "branch": line.branch,
        "default_branch": line.default_branch,
        "remote": line.remote,
        "ahead": line.relation.ahead,
        "behind": line.relation.behind,
        "local": {
            "staged": local.staged,
            "unstaged": local.unstaged,
            "conflicted": local.conflicted,
            "untracked": len(local.untracked),
            "submodules": [{"path": path, "problem": words} for path, words in local.submodules],
            "in_progress": list(local.in_progress),
            "locked": list(local.locked),
        },
        "status": outcome.status.value,
        "reason": outcome.reason,
        "remedy": list(outcome.remedy),
        "files": list(outcome.files),
        "old": outcome.old,
        "new": outcome.new,
        "notes": list(outcome.notes),
    }


def _safe_values(value: Any) -> Any:
    if isinstance(value, str):
        return safe(value)
    if isinstance(value, Mapping):
        return {key: _safe_values(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_safe_values(inner) for inner in value]
    return value


class Screen:
    """Tables and lines for people: in colour on a terminal, plain elsewhere."""

    def __init__(self, project: Path):
        """Prepares the output.

        Args:
          project: folders are shown relative to the folder around it.
        """
        self._around = project.parent
        self._made: Any = None

    @property
    def _console(self) -> Any:
        if self._made is None:
            # rich takes as long to import as all the rest.
            from rich.console import Console

            width = None if sys.stdout.isatty() else 160
            self._made = Console(width=width, highlight=False, soft_wrap=False)
        return self._made

    def prepare(self) -> None:
        """Does what does not depend on what will be shown: a table with nothing in it."""
        with self._console.capture():
            self._print("", ("repository",), [("nothing", "")])

    def say(self, text: str, style: str = "") -> None:
        from rich.text import Text

        self._console.print(Text(safe(text), style=style), soft_wrap=True)

    def table(self, title: str, what: str, lines: Sequence[Line], details: bool = True) -> None:
        """Repositories, each in one row; then, as details, what a person has to do."""
        rows = [
            (
                line.name,
                self._shown(line),
                _branch(line),
                _counted(line.relation),
                line.local.words(),
                _ended(line.outcome),
                _STYLES[line.outcome.status],
            )
            for line in lines
        ]
        self._print(title, ("repository", "folder", "branch", "↑↓", "local work", what), rows)
        for line in lines if details else ():
            self._more(line)

    def runs(self, rows: Sequence[tuple[str, ...]]) -> None:
        """What can be undone."""
        titles = ("run", "repository", "what moved", "state")
        self._print("Runs", titles, [(*row, "") for row in rows])

    def _print(self, title: str, names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
        from rich.table import Table
        from rich.text import Text

        table = Table(title=title, box=None, title_justify="left", pad_edge=False)
        used = [i for i, name in enumerate(names) if any(row[i] for row in rows)]
        for i in used:
            # Reasons are long; on a narrow terminal folders and local work give way to them.
            table.add_column(names[i], overflow="fold", no_wrap=names[i] in _SHORT)
        for *cells, style in rows:
            # Where words come in the style of the row, names do not.
            styles = ["bold" if i == 0 else style if i == 5 else "" for i in range(len(cells))]
            table.add_row(*(Text(safe(cells[i]), style=styles[i]) for i in used))
        self._console.print(table)

    def _more(self, line: Line) -> None:
        outcome = line.outcome
        for note in outcome.notes:
            self.say(f"{line.name}: {note}")
        if outcome.files:
            self.say(f"{line.name}: files: {', '.join(outcome.files)}")
        for command in outcome.remedy:
            self.say(f"{line.name}: {command}", "cyan")

    def _shown(self, line: Line) -> str:
        """The folder, and how it was found where the table does not say it."""
        if line.path is None:
            return ""
        place = os.path.relpath(line.path, self._around)
        return f"{place} ({line.found})" if line.found not in ("", "configured") else place


def _ended(outcome: Outcome) -> str:
    return f"{outcome.status.value}: {outcome.reason}" if outcome.reason else outcome.status.value


def _branch(line: Line) -> str:
    known = line.branch is not None or line.default_branch is None
    return (line.branch or "") if known else "(detached)"


def _counted(relation: Relation) -> str:
    return f"+{relation.ahead} -{relation.behind}" if relation.ahead or relation.behind else ""


def _moves(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [change for change in record["changes"] if change["kind"] == "ref"]


def run_row(name: str, record: Mapping[str, Any]) -> tuple[str, ...]:
    """A run in one repository, for the list."""
    words = []
    for move in _moves(record):
        old, new = (move[key][:10] if move[key] else "nothing" for key in ("old", "new"))
        words.append(f"{move['ref'].removeprefix('refs/')} {old} → {new}")
    others = [change["kind"] for change in record["changes"] if change["kind"] != "ref"]
    words += [f"{others.count(kind)} {kind}" for kind in dict.fromkeys(others)]
    return (record["run"], name, "\n".join(words), _state(record))


def _state(record: Mapping[str, Any]) -> str:
    if record["undone"]:
        return f"undone {record['undone']}"
    return "interrupted" if record["state"] != "done" else record["command"]


def runs_as_json(records: Sequence[Mapping[str, Any]]) -> str:
    """The list of runs for programs."""
    runs = [
        {
            "run": record["run"],
            "name": record["name"],
            "path": record["path"],
            "state": _state(record),
            "moves": [{key: m[key] for key in ("ref", "old", "new")} for m in _moves(record)],
        }
        for record in records
    ]
    return _dumped({"schema": SCHEMA, "command": "runs", "runs": runs})
