"""--autostash: local changes put aside for an update and brought back after it.

What is staged comes back staged. Untracked files stay where they are.
"""

from pathlib import Path

from scripts.repos import backup, git


def put(path: Path, journal: backup.Journal) -> str:
    """Puts local changes aside; returns the stash's commit.

    Raises:
      git.GitError: git could not; nothing has changed.
    """
    message = f"update_repos {journal.run}"
    entry = journal.note("stash", message=message, commit=None, restored=False)
    try:
        git.change(path, "stash", "push", "--quiet", "--message", message)
    except git.GitError:
        journal.changes.remove(entry)
        journal.save()
        raise
    commit = git.ask(path, "rev-parse", "refs/stash")
    backup.keep_refs(path, journal.run, [backup.Move("stash", commit, commit)])
    entry["commit"] = commit
    journal.save()
    return commit


def bring_back(path: Path, commit: str) -> str:
    """Applies a stash and drops it. When it does not apply, it is kept, and the checkout is clean.

    Args:
      path: the checkout.
      commit: of the stash.

    Returns:
      What hindered; empty when all is back.
    """
    applied = git.run(path, "stash", "apply", "--index", "--quiet", commit, changing=True)
    if applied.code != 0:
        # Back to what HEAD has; what was half applied is in the stash.
        git.run(path, "reset", "--quiet", "--merge", changing=True)
        return applied.words or applied.out.strip().replace("\n", "; ") or "conflicts"
    name = name_of(path, commit)
    if name is not None:
        git.run(path, "stash", "drop", "--quiet", name, changing=True)
    return ""


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
