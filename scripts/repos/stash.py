"""--autostash: local changes put aside for an update and brought back after it.

What is staged comes back staged. Untracked files stay where they are.
"""

from pathlib import Path
from typing import Any

from scripts.repos import backup, git


def put(path: Path, journal: backup.Journal) -> dict[str, Any]:
    """Puts local changes aside; returns the journal's entry about it.

    Raises:
      git.GitError: git could not; all is as it was, or, as the error says, in the stash.
    """
    message = f"update_repos {journal.run}"
    entry = journal.note("stash", message=message, commit=None, restored=False, after=None)
    try:
        entry["commit"] = push(path, message)
    except git.GitError:
        if find(path, message) is None:
            journal.changes.remove(entry)
            journal.save()
        raise
    backup.keep_refs(path, journal.run, [backup.Move("stash", entry["commit"], "")])
    journal.save()
    return entry


def push(path: Path, message: str) -> str:
    """Makes a stash with a message; returns its commit.

    Raises:
      git.GitError: git could not; all is as it was, or, as the error says, in the stash.
    """
    words = ("stash", "push", "--quiet", "--message", message)
    result = git.run(path, *words, changing=True)
    commit = find(path, message)
    if result.code == 0 and commit is not None:
        return commit
    if commit is not None and not _take_back(path, commit):
        kept = f"fatal: local changes are kept in {name_of(path, commit)}: {result.words}"
        result = result._replace(err=kept)
    raise git.GitError(path, words, result)


def _take_back(path: Path, commit: str) -> bool:
    """Whether the changes of a stash are where they were, after git failed to clear them away.

    It does so by a reset, which fails where HEAD is locked: before or after it changed files.
    """
    now = fingerprint(path)
    if now != trees(path, commit) and (now or apply(path, commit)):
        return False
    drop(path, commit)
    return True


def bring_back(path: Path, entry: dict[str, Any], journal: backup.Journal) -> str:
    """Applies what `put` put aside. When it does not apply, it is kept, and the checkout is clean.

    Returns:
      What hindered; empty when all is back.
    """
    hindrance = apply(path, entry["commit"])
    if not hindrance:
        # Written before the stash goes: there is no moment at which nobody knows of it.
        entry.update(restored=True, after=fingerprint(path))
        journal.save()
        drop(path, entry["commit"])
    return hindrance


def apply(path: Path, commit: str) -> str:
    """Applies a stash to a clean checkout; returns what hindered, and then it is clean again."""
    applied = git.run(path, "stash", "apply", "--index", "--quiet", commit, changing=True)
    if applied.code == 0:
        return ""
    # Back to what HEAD has; what was half applied is in the stash.
    git.run(path, "reset", "--quiet", "--merge", changing=True)
    return applied.words or applied.out.strip().replace("\n", "; ") or "conflicts"


def drop(path: Path, commit: str) -> None:
    """Takes a stash off the list, if it is there."""
    name = name_of(path, commit)
    if name is not None:
        git.run(path, "stash", "drop", "--quiet", name, changing=True)


def fingerprint(path: Path) -> list[str]:
    """What the local changes are: the trees of a stash of them, which is not kept."""
    commit = git.change(path, "stash", "create")
    if not commit:
        return []
    return trees(path, commit)


def trees(path: Path, commit: str) -> list[str]:
    """Of a stash: what the files were, and what was staged."""
    return git.ask(path, "rev-parse", f"{commit}^{{tree}}", f"{commit}^2^{{tree}}").split()


def name_of(path: Path, commit: str) -> str | None:
    """Such as stash@{0}; None when it is not in the list."""
    for line in git.run(path, "stash", "list", "--format=%gd %H").out.split("\n"):
        name, _, listed = line.partition(" ")
        if listed == commit:
            return name
    return None


def find(path: Path, message: str) -> str | None:
    """The commit of the stash with a message."""
    for line in git.run(path, "stash", "list", "--format=%H %gs").out.split("\n"):
        commit, _, subject = line.partition(" ")
        if subject.endswith(message):
            return commit
    return None
