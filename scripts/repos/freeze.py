"""`freeze FILE` writes the exact commits of repositories, and `--to FILE` reads them.

schema = "update-repos-freeze/1"

[repository.pytorch]
commit = "0123456789012345678901234567890123456789"
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from scripts.repos import inspect, table
from scripts.repos.model import Entry, Repo, Status, UsageError

_SCHEMA = "update-repos-freeze/1"
_HEAD = f"""\
# Commits of repositories. Written by:  scripts/update_repos.py freeze FILE
# Check them out again by:              scripts/update_repos.py --to FILE
schema = "{_SCHEMA}"
"""


def check(file: Path) -> None:
    """Refuses (UsageError) to write over a file that is something else."""
    if file.exists():
        remedy = "Name another file."
        try:
            is_ours = table.load(file).get("schema") == _SCHEMA
        except UsageError:
            is_ours = False
        if not is_ours:
            raise UsageError(f"{file} exists, and `freeze` did not write it.", remedy)


def frozen(repo: Repo, others: Iterable[Path]) -> Repo:
    """The end of a repository in a run that writes down its commit; raises Ended, GitError."""
    repo = inspect.work(inspect.refs(inspect.folders(repo))[0], others)
    notes = []
    if repo.local.words():
        notes.append(f"local work is not in the file: {repo.local.words()}")
    if not inspect.is_published(repo.place):
        notes.append("its commit is on no remote branch; others cannot fetch it")
    return repo.noting(*notes).ended(Status.CURRENT, f"at {(repo.head or '')[:10]}", new=repo.head)


def write(file: Path, repos: Iterable[Repo]) -> None:
    """Writes the commits of all repositories that are `frozen`."""
    parts = [_HEAD]
    for repo in repos:
        if repo.status is Status.CURRENT:
            parts.append(f'\n[repository.{json.dumps(repo.name)}]\ncommit = "{repo.head}"\n')
    temporary = file.with_name(f".{file.name}.new")
    try:
        temporary.write_text("".join(parts), encoding="utf-8")
        temporary.replace(file)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UsageError(f"{file} cannot be written: {error}", "Name another file.") from None


def read(file: Path, entries: Mapping[str, Entry]) -> dict[str, str]:
    """The commits that a file names, by repository; raises UsageError."""
    content = table.load(file)
    repositories = content.get("repository", {})
    if content.get("schema") != _SCHEMA or not isinstance(repositories, dict):
        raise UsageError(f"{file} was not written by `freeze`.", "Name a file that was.")
    found = {}
    for name, keys in repositories.items():
        commit = keys.get("commit") if isinstance(keys, dict) else None
        is_commit = isinstance(commit, str) and len(commit) in (40, 64)
        if not is_commit or not set(commit) <= set("0123456789abcdef"):
            raise UsageError(f"{file} names no whole commit for {name}.", f"Correct {file}.")
        if name not in entries:
            known = ", ".join(entries)
            raise UsageError(f"{file} names {name}, which the table does not.", f"Known: {known}.")
        found[name] = commit
    return found
