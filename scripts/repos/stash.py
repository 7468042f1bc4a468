"""--autostash: local changes put aside for an update and brought back after it.

What is staged comes back staged. Untracked files stay where they are.
"""

from pathlib import Path
from typing import Any

from scripts.repos import backup, git


def put(path: Path, journal: backup.Journal) -> dict[str, Any]:
    """Puts local changes aside; returns the journal's entry about it.

    Raises:
      git.GitError: git could not; nothing has changed.
    """
    message = f"update_repos {journal.run}"
    entry = journal.note("stash", message=message, commit=None, restored=False, after=None)
    try:
        git.change(path, "stash", "push", "--quiet", "--message", message)
    except git.GitError:
        journal.changes.remove(entry)
        journal.save()
        raise
    entry["commit"] = git.ask(path, "rev-parse", "refs/stash")
    backup.keep_refs(path, journal.run, [backup.Move("stash", entry["commit"], "")])
    journal.save()
    return entry


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
    return git.ask(path, "rev-parse", f"{commit}^{{tree}}", f"{commit}^2^{{tree}}").split()


def name_of(path: Path, commit: str) -> str | None:
    """Such as stash@{0}; None when it is not in the list."""
    for line in git.run(path, "stash", "list", "--format=%gd %H").out.splitlines():
        name, _, listed = line.partition(" ")
        if listed == commit:
            return name
    return None


def find(path: Path, message: str) -> str | None:
    """The commit of the stash with a message."""
    for line in git.run(path, "stash", "list", "--format=%H %gs").out.splitlines():
        commit, _, subject = line.partition(" ")
        if subject.endswith(message):
            return commit
    return None
