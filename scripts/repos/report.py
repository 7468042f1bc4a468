"""Tables for people and JSON for programs.

The JSON (`--json`) is stable: a change that could break a reader changes the number in `schema`.
report.schema.json describes it in full.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.repos import git, undo, urls
from scripts.repos.model import Repo, Status, shortened

SCHEMA = "update-repos/1"


def safe(text: str) -> str:
    """A text in one line that a terminal may get: without credentials and control characters."""
    text = urls.redact(text, git.SECRETS)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Output:
    """The standard output: text, or JSON alone.

    `problem` says why something could not be written; the update itself goes on.
    """

    def __init__(self, wants_json: bool) -> None:
        self.problem, self._wants_json = "", wants_json
        if sys.stdout is not None:
            sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]

    def say(self, text: str) -> None:
        """Prints one line."""
        if not self._wants_json:
            self._write(safe(text))

    def json(self, content: Mapping[str, Any]) -> None:
        """Prints JSON."""
        if self._wants_json:
            self._write(json.dumps(_without_secrets({"schema": SCHEMA, **content}), indent=2))

    def table(self, title: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Prints rows of cells; empty columns are left out. A narrow terminal wraps the lines."""
        self.say(title)
        listed = [[*map(safe, cells)] for cells in (names, *rows)]
        used = [i for i in range(len(names)) if any(cells[i] for cells in listed[1:])]
        widths = {i: max(len(cells[i]) for cells in listed) for i in used}
        for cells in listed:
            self.say("  ".join(f"{cells[i]:{widths[i]}}" for i in used).rstrip())

    def _write(self, text: str) -> None:
        try:
            print(text, flush=True)
        except OSError as error:
            # The disk is full, or the reader of a pipe has ended.
            self.problem = str(error)
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def table(output: Output, title: str, heading: str, repos: Sequence[Repo], around: Path) -> None:
    """Prints repositories, each in one row; folders are relative to `around`."""
    rows = []
    for repo in repos:
        folder = os.path.relpath(repo.path, around) if repo.path else ""
        # How it was found, where the table does not say it.
        folder += f" ({repo.found})" if repo.found not in ("", "configured") else ""
        is_detached = repo.head is not None and repo.branch is None
        branch = f"(detached {repo.head[:10]})" if is_detached and repo.head else repo.branch or ""
        ahead, behind = repo.relation.ahead, repo.relation.behind
        counted = f"+{ahead} -{behind}" if ahead or behind else ""
        status = repo.status or Status.CURRENT
        end = f"{status.value}: {repo.reason}" if repo.reason else status.value
        rows.append((repo.name, folder, branch, counted, repo.local.words(), end))
    output.table(title, ("repository", "folder", "branch", "↑↓", "local work", heading), rows)


def details(output: Output, repos: Iterable[Repo]) -> None:
    """Prints notes, files and commands for a person."""
    for repo in repos:
        for note in repo.notes:
            output.say(f"{repo.name}: {note}")
        if repo.files:
            output.say(f"{repo.name}: files: {shortened(repo.files, 100)}")
        for command in repo.remedy:
            output.say(f"{repo.name}: {command}")


def as_json(repo: Repo) -> dict[str, Any]:
    """A repository for programs."""
    counted = ("staged", "unstaged", "conflicted", "untracked")
    submodules = [{"path": path, "problem": words} for path, words in repo.local.submodules]
    local = repo.local._asdict() | {"submodules": submodules}
    local |= {key: len(local[key]) for key in counted}
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


def runs(output: Output, listed: Iterable[undo.Recorded]) -> None:
    """Prints what can be undone."""
    rows, content = [], []
    for entry in listed:
        moves = [{"ref": "HEAD", **c} for c in entry.changes if c["kind"] in ("ref", "head")]
        moves = [{key: move[key] for key in ("ref", "old", "new")} for move in moves]
        about = {"run": entry.run, "name": entry.name, "path": os.fsdecode(entry.path)}
        content.append({**about, "state": entry.state, "moves": moves})
        parts = []
        for move in moves:
            old, new = (move[key][:10] if move[key] else "nothing" for key in ("old", "new"))
            parts.append(f"{move['ref'].removeprefix('refs/')} {old} → {new}")
        kinds = [change["kind"] for change in entry.changes]
        others = dict.fromkeys(kind for kind in kinds if kind not in ("ref", "head"))
        parts += [f"{kinds.count(kind)} {kind}" for kind in others]
        rows.append((entry.run, entry.name, entry.state, ", ".join(parts)))
    if rows:
        output.table("Runs", ("run", "repository", "state", "what moved"), rows)
    else:
        output.say("No run is recorded.")
    output.json({"command": "runs", "runs": content})
