"""Tables for people and JSON for programs.

The JSON (`--json`) is stable: a change that could break a reader changes the number in `schema`.
report.schema.json describes it in full.
"""

import json
import os
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.repos import git, journal
from scripts.repos.model import Repo, Status, shortened

SCHEMA = "update-repos/1"

# Columns of a row.
_WIDTH = 100


def safe(text: str) -> str:
    """A text in one line that a terminal may get: without credentials and control characters."""
    text = git.redact(text)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Output:
    """The standard output: text, or JSON alone.

    Folders are printed relative to `around`. `problem` says why something could not be written; the
    update itself goes on.
    """

    def __init__(self, wants_json: bool, around: Path) -> None:
        self.problem, self._wants_json, self._around = "", wants_json, around
        if sys.stdout is not None:
            sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]

    def say(self, text: str) -> None:
        if not self._wants_json:
            self._write(safe(text))

    def json(self, content: Mapping[str, Any]) -> None:
        if self._wants_json:
            # Names stay exact: JSON escapes what a terminal must not get.
            self._write(git.redact(json.dumps({"schema": SCHEMA, **content}, indent=2)))

    def repositories(
        self, title: str, heading: str, repos: Sequence[Repo], *, details: bool = True
    ) -> None:
        """Prints a row for each repository; then, as `details`, notes, files and commands."""
        names = ("repository", "folder", "branch", "↑↓", "local work", heading)
        self._table(title, names, [self._row(repo) for repo in repos])
        for repo in repos if details else ():
            what = "files that are as before" if repo.status is Status.UNDONE else "files"
            files = [f"{what}: {shortened(repo.files, 100)}"] if repo.files else []
            for line in (*repo.notes, *files):
                self.say(f"{repo.name}: {line}")
            for command in repo.remedy:
                self.say(f"  {command}")

    def _row(self, repo: Repo) -> tuple[str, ...]:
        folder = os.path.relpath(repo.path, self._around) if repo.found else ""
        # How it was found, where that is not the usual way.
        is_usual = repo.found in ("", "configured", "usual place", "this project", "recorded")
        folder += "" if is_usual else f" ({repo.found})"
        branch = repo.branch or (f"(detached {repo.head[:10]})" if repo.head else "")
        relation = repo.left or repo.relation
        ahead, behind = relation.ahead, relation.behind
        counted = f"+{ahead} -{behind}" if ahead or behind else ""
        status = (repo.status or Status.CURRENT).value
        end = f"{status}: {repo.reason}" if repo.reason else status
        return repo.name, folder, branch, counted, repo.local.describe(), end

    def runs(self, listed: Iterable[journal.Record]) -> None:
        """Prints what can be undone."""
        rows, content = [], []
        for record in listed:
            moves = [change for change in record.changes if change.kind in ("ref", "head")]
            about = {"run": record.run, "name": record.name, "path": os.fsdecode(record.path)}
            moved = [{"ref": move.ref, "old": move.old, "new": move.new} for move in moves]
            content.append({**about, "state": record.describe(), "moves": moved})
            parts = []
            for move in moves:
                old, new = (commit[:10] if commit else "nothing" for commit in move[1:3])
                parts.append(f"{move.ref.removeprefix('refs/')} {old} → {new}")
            others = Counter(c.kind for c in record.changes if c not in moves)
            parts += [f"{count} {kind}" for kind, count in others.items()]
            rows.append((record.run, record.name, record.describe(), ", ".join(parts)))
        if rows:
            self._table("Runs", ("run", "repository", "state", "what moved"), rows)
        else:
            self.say("No run is recorded.")
        self.json({"command": "runs", "runs": content})

    def _table(self, title: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Prints rows of cells; empty columns are left out.

        The last cell goes on in lines of its own where a row would be wider than `_WIDTH`.
        """
        self.say(title)
        listed = [[*map(safe, cells)] for cells in (names, *rows)]
        used = [i for i in range(len(names)) if any(cells[i] for cells in listed[1:])]
        widths = {i: max(len(cells[i]) for cells in listed) for i in used}
        for cells in listed:
            *first, last = [f"{cells[i]:{widths[i]}}" for i in used]
            begin = "".join(f"{cell}  " for cell in first)
            # Below the first cell where little is left beside the others.
            room = _WIDTH - len(begin)
            indent = len(begin) if room >= 30 else 4
            lines = textwrap.wrap(last, _WIDTH - indent, break_on_hyphens=False)
            if room < 30 or not lines:
                self.say(begin.rstrip())
                begin = " " * indent
            for line in lines:
                self.say(f"{begin}{line}".rstrip())
                begin = " " * indent

    def _write(self, text: str) -> None:
        try:
            print(text, flush=True)
        except OSError as error:
            # The disk is full, or the reader of a pipe has ended.
            self.problem = str(error)
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def as_json(repo: Repo) -> dict[str, Any]:
    counted = ("staged", "unstaged", "conflicted", "untracked")
    submodules = [{"path": path, "problem": words} for path, words in repo.local.submodules]
    local = repo.local._asdict() | {"submodules": submodules}
    local |= {key: len(local[key]) for key in counted}
    same = ("name", "found", "branch", "default_branch", "reason", "remedy", "files", "notes")
    return {
        **{key: getattr(repo, key) for key in same},
        **{"ahead": repo.relation.ahead, "behind": repo.relation.behind, "local": local},
        **{"remote": repo.official, "old": repo.head, "new": repo.new or repo.head},
        "path": os.fsdecode(repo.path) if repo.found else None,
        "status": (repo.status or Status.CURRENT).value,
    }
