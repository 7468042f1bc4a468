"""Tables for people and JSON for programs, whose fields are not renamed."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.repos import git, journal
from scripts.repos.model import Repo, Status, shortened


def safe(text: str) -> str:
    """A text in one line that a terminal may get: without credentials and control characters."""
    return "".join(c if c.isprintable() else _escaped(c) for c in git.redact(text))


def _escaped(character: str) -> str:
    """As a shell's $'...' takes it; a byte that is no UTF-8 is a surrogate here."""
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()


class Output:
    """The standard output: text, or JSON alone. Folders are printed relative to `around`."""

    def __init__(self, wants_json: bool, around: Path) -> None:
        self._wants_json, self._around = wants_json, around
        if sys.stdout is not None:
            sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]

    def say(self, text: str) -> None:
        if not self._wants_json:
            print(safe(text), flush=True)

    def json(self, content: Mapping[str, Any]) -> None:
        if self._wants_json:
            # Names stay exact: JSON escapes what a terminal must not get.
            print(git.redact(json.dumps(content, indent=2)), flush=True)

    def repositories(
        self, title: str, heading: str, repos: Sequence[Repo], *, details: bool = True
    ) -> None:
        """Prints a row for each repository; then, as `details`, notes, files and commands."""
        names = ("repository", "folder", "branch", "↑↓", "local work", heading)
        self._table(title, names, [self._row(repo) for repo in repos])
        for repo in repos if details else ():
            files = [f"files: {shortened(repo.files, 100)}"] if repo.files else []
            for line in (*repo.notes, *files):
                self.say(f"{repo.name}: {line}")
            for command in repo.remedy:
                self.say(f"  {command}")

    def _row(self, repo: Repo) -> tuple[str, ...]:
        folder = os.path.relpath(repo.path, self._around) if repo.found else ""
        branch = repo.branch or (f"(detached {repo.head[:10]})" if repo.head else "")
        ahead, behind, _ = repo.relation
        counted = f"+{ahead} -{behind}" if ahead or behind else ""
        status = (repo.status or Status.CURRENT).value
        end = f"{status}: {repo.reason}" if repo.reason else status
        return repo.name, folder, branch, counted, repo.local.describe(), end

    def runs(self, runs: journal.Runs) -> None:
        """Prints what can be undone, the latest run first."""
        listed = [(run, *moved) for run in reversed(runs) for moved in runs[run].items()]
        rows = [
            (run, name, f"{change.ref} {change.old[:10]} → {change.new[:10]}")
            for run, name, change in listed
        ]
        if rows:
            self._table("Runs", ("run", "repository", "what moved"), rows)
        else:
            self.say("No run is recorded.")
        content = [{"run": run, "name": name, **change._asdict()} for run, name, change in listed]
        self.json({"command": "runs", "runs": content})

    def _table(self, title: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Prints rows of cells; empty columns are left out, and the last one is not padded."""
        self.say(title)
        listed = [[*map(safe, cells)] for cells in (names, *rows)]
        used = [i for i in range(len(names)) if any(cells[i] for cells in listed[1:])]
        widths = {i: max(len(cells[i]) for cells in listed) for i in used}
        for cells in listed:
            self.say("  ".join(f"{cells[i]:{widths[i]}}" for i in used).rstrip())


def as_json(repo: Repo) -> dict[str, Any]:
    counted = ("changed", "conflicted", "untracked")
    local = repo.local._asdict() | {key: len(getattr(repo.local, key)) for key in counted}
    same = ("name", "found", "branch", "default_branch", "reason", "remedy", "files", "notes")
    return {
        **{key: getattr(repo, key) for key in same},
        **{"ahead": repo.relation.ahead, "behind": repo.relation.behind, "local": local},
        **{"remote": repo.official, "old": repo.head, "new": repo.new or repo.head},
        "path": os.fsdecode(repo.path) if repo.found else None,
        "status": (repo.status or Status.CURRENT).value,
    }
