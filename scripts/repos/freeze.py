"""`freeze FILE` writes the exact commits of repositories, and `--to FILE` reads them.

schema = "update-repos-freeze/1"

[repository.pytorch]
commit = "0123456789012345678901234567890123456789"
"""

import json
import re
from collections.abc import Collection, Iterable
from pathlib import Path

from scripts.repos import inspect, journal, table
from scripts.repos.model import Repo, Status, UsageError

_SCHEMA = "update-repos-freeze/1"
_COMMIT = re.compile("[0-9a-f]{40}([0-9a-f]{24})?")
_HEAD = f"""\
# Commits of repositories. Written by:  scripts/update_repos.py freeze FILE
# Check them out again by:              scripts/update_repos.py --to FILE
schema = "{_SCHEMA}"
"""


def frozen(repo: Repo, others: Iterable[Path]) -> Repo:
    """The final record of a repository if its commit is to be written; raises Ended, GitError."""
    repo = inspect.work(inspect.refs(inspect.folder(repo)), others)
    notes = []
    if repo.local.words():
        notes.append(f"local work is not in the file: {repo.local.words()}")
    if not inspect.is_published(repo.place):
        notes.append("its commit is on no remote branch; others cannot fetch it")
    return repo.noting(*notes).ended(Status.CURRENT, f"at {(repo.head or '')[:10]}")


def write(file: Path, repos: Iterable[Repo]) -> None:
    """Writes the commits of all repositories that are `frozen`."""
    written = [repo for repo in repos if repo.status is Status.CURRENT]
    rows = [f'\n[repository.{json.dumps(r.name)}]\ncommit = "{r.head}"\n' for r in written]
    try:
        journal.write(file, "".join([_HEAD, *rows]))
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error}", "Name another file.") from None


def read(file: Path, known: Collection[str] | None = None) -> dict[str, str]:
    """The commits that a file names, of `known` repositories if given; raises UsageError."""
    content = table.load(file)
    repositories = content.get("repository", {})
    if content.get("schema") != _SCHEMA or not isinstance(repositories, dict):
        raise UsageError(f"{file} was not written by `freeze`.", "Name a file that was.")
    for name, keys in repositories.items():
        if not (isinstance(keys, dict) and _COMMIT.fullmatch(str(keys.get("commit")))):
            raise UsageError(f"{file} names no whole commit for {name}.", f"Correct {file}.")
        if known is not None:
            table.check_known(name, known, str(file))
    return {name: keys["commit"] for name, keys in repositories.items()}
