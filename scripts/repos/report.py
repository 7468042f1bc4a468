"""Tables for people and JSON for programs.

The JSON (`--json`) is stable: `schema` is "update-repos/1", and a change that could break a reader
changes the number. report.schema.json describes it in full:

    {"schema": "update-repos/1", "command": "update", "run": "20261121T123456-123456",
     "exit_code": 0, "repositories": [{"name": "pytorch", "status": "updated", ...}], "next": []}
"""

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.repos import git, plan, undo, urls
from scripts.repos.model import Repo, Status

SCHEMA = "update-repos/1"

_GREEN, _YELLOW, _RED, CYAN = "32", "33", "31", "36"
_COLOURS = {
    **dict.fromkeys((Status.CURRENT, Status.KEPT), _GREEN),
    **dict.fromkeys((Status.UPDATED, Status.CLONED, Status.UNDONE), f"1;{_GREEN}"),
    **dict.fromkeys((Status.SKIPPED, Status.MISSING), _YELLOW),
    **dict.fromkeys((Status.FAILED, Status.UNREACHABLE), _RED),
    **{Status.PLANNED: CYAN, Status.ABSENT: "2"},
}


def safe(text: str) -> str:
    """A text in one line that a terminal may get: without credentials and control characters."""
    text = urls.redact(text, git.SECRETS)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Output:
    """The standard output: in colour on a terminal, plain elsewhere.

    `problem` says why something could not be written; the update itself goes on.
    """

    def __init__(self) -> None:
        self.problem = ""
        on_terminal = sys.stdout is not None and sys.stdout.isatty()
        self._coloured = on_terminal and not os.environ.get("NO_COLOR")
        self._width = shutil.get_terminal_size().columns if on_terminal else None
        if sys.stdout is not None:
            sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]

    def say(self, text: str, colour: str = "") -> None:
        """Prints one line."""
        self.write(safe(text), colour)

    def write(self, text: str, colour: str = "") -> None:
        """Prints a text as it is."""
        if self._coloured and colour:
            text = f"\x1b[{colour}m{text}\x1b[0m"
        try:
            print(text, flush=True)
        except OSError as error:
            # The disk is full, or the reader of a pipe has ended.
            self.problem = str(error)
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def table(
        self, title: str, names: Sequence[str], rows: Sequence[tuple[Sequence[str], str]]
    ) -> None:
        """Prints rows of cells, each row with its colour; empty columns are left out."""
        self.say(title)
        listed = [([*map(safe, cells)], colour) for cells, colour in [(names, "1"), *rows]]
        used = [i for i in range(len(names)) if any(cells[i] for cells, _ in listed[1:])]
        widths = {i: max(len(cells[i]) for cells, _ in listed) for i in used}
        for cells, colour in listed:
            line = "  ".join(f"{cells[i]:{widths[i]}}" for i in used).rstrip()
            # What a terminal has no room for goes into further lines.
            width = max(self._width or len(line), 16)
            wrapper = textwrap.TextWrapper(width, subsequent_indent="    ", break_on_hyphens=False)
            for part in wrapper.wrap(line):
                self.write(part, colour)


def table(output: Output, title: str, heading: str, repos: Sequence[Repo], around: Path) -> None:
    """Prints repositories, each in one row; folders are relative to `around`."""
    rows = []
    for repo in repos:
        folder = os.path.relpath(repo.path, around) if repo.path else ""
        # How it was found, where the table does not say it.
        folder += f" ({repo.found})" if repo.found not in ("", "configured") else ""
        is_detached = repo.head is not None and repo.branch is None
        branch = f"(detached {repo.head[:10]})" if is_detached and repo.head else repo.branch or ""
        counts = repo.relation[:2]
        counted = "+{} -{}".format(*counts) if any(counts) else ""
        status = repo.status or Status.CURRENT
        end = f"{status.value}: {repo.reason}" if repo.reason else status.value
        cells = (repo.name, folder, branch, counted, repo.local.words(), end)
        rows.append((cells, _COLOURS[status]))
    output.table(title, ("repository", "folder", "branch", "↑↓", "local work", heading), rows)


def details(output: Output, repos: Iterable[Repo]) -> None:
    """Prints notes, files and commands for a person."""
    for repo in repos:
        for note in repo.notes:
            output.say(f"{repo.name}: {note}")
        if repo.files:
            output.say(f"{repo.name}: files: {plan.few(repo.files, 100)}")
        for command in repo.remedy:
            output.say(f"{repo.name}: {command}", CYAN)


def as_json(
    command: str, run: str | None, code: int, repos: Iterable[Repo], commands: Sequence[str]
) -> str:
    """The report for programs."""
    head = {"schema": SCHEMA, "command": command, "run": run, "exit_code": code}
    rows = [_repo_as_json(repo) for repo in repos]
    return _dumped({**head, "repositories": rows, "next": list(commands)})


def _dumped(content: Mapping[str, Any]) -> str:
    return json.dumps(_without_secrets(content), indent=2)


def _repo_as_json(repo: Repo) -> dict[str, Any]:
    local = repo.local._asdict() | {
        "untracked": len(repo.local.untracked),
        "submodules": [{"path": path, "problem": words} for path, words in repo.local.submodules],
    }
    del local["changed"]
    same = ("name", "found", "branch", "default_branch", "reason", "remedy", "files", "notes")
    return {
        **{key: getattr(repo, key) for key in same},
        **{"ahead": repo.relation.ahead, "behind": repo.relation.behind, "local": local},
        **{"remote": repo.official, "old": repo.head, "new": repo.new or repo.head},
        "path": None if repo.path is None else os.fsdecode(repo.path),
        "status": (repo.status or Status.CURRENT).value,
    }


def _without_secrets(value: Any) -> Any:
    if isinstance(value, str):
        # Names stay exact: JSON escapes what a terminal must not get.
        return urls.redact(value, git.SECRETS)
    if isinstance(value, Mapping):
        return {key: _without_secrets(inner) for key, inner in value.items()}
    return [*map(_without_secrets, value)] if isinstance(value, (list, tuple)) else value


def runs_table(output: Output, runs: Iterable[undo.Recorded]) -> None:
    """Prints what can be undone."""
    rows = []
    for entry in runs:
        parts = []
        for move in _moves(entry):
            old, new = (move[key][:10] if move[key] else "nothing" for key in ("old", "new"))
            parts.append(f"{move['ref'].removeprefix('refs/')} {old} → {new}")
        kinds = [change["kind"] for change in entry.changes]
        others = dict.fromkeys(kind for kind in kinds if kind not in ("ref", "head"))
        parts += [f"{kinds.count(kind)} {kind}" for kind in others]
        rows.append(((entry.run, entry.name, entry.state, ", ".join(parts)), ""))
    output.table("Runs", ("run", "repository", "state", "what moved"), rows)


def runs_as_json(runs: Iterable[undo.Recorded]) -> str:
    """The list of runs for programs."""
    listed = [
        {
            **{"run": entry.run, "name": entry.name, "path": os.fsdecode(entry.path)},
            **{"state": entry.state, "moves": _moves(entry)},
        }
        for entry in runs
    ]
    return _dumped({"schema": SCHEMA, "command": "runs", "runs": listed})


def _moves(entry: undo.Recorded) -> list[dict[str, Any]]:
    moves = [{"ref": "HEAD", **c} for c in entry.changes if c["kind"] in ("ref", "head")]
    return [{key: move[key] for key in ("ref", "old", "new")} for move in moves]
