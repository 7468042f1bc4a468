"""Moves HEAD with index and files, and prepares rebases and merges away from the user's files.

git looks for hindrances before it writes anything. It can fail all the same: a filter such as
git-lfs is missing, the disk is full, a ref is locked. Then files are written and HEAD stays, and
`to` restores the files.
"""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from scripts.repos import git, journal
from scripts.repos.model import Action

_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
# Names that no worktree of a person has.
_TREES = "????????T??????-??????-tree"
_DIFFERING = ("diff-files", "--name-only", "-z", "--ignore-submodules")
_CHECKOUT = ("checkout", "--quiet", "--no-overwrite-ignore")

FAST_FORWARD = ("merge", "--quiet", "--ff-only", "--no-squash", "--no-overwrite-ignore")


def branch_to(branch: str, commit: str) -> tuple[str, ...]:
    """Moves the checked-out branch. Unlike `reset --keep` it keeps what is staged."""
    return (*_CHECKOUT, "--no-track", "-B", branch, commit, "--")


def head_to(commit: str, branch: str | None = None) -> tuple[str, ...]:
    """Checks out a branch, or detaches HEAD at a commit."""
    return (*_CHECKOUT, *((branch, "--") if branch else ("--detach", commit)))


def to(path: Path, words: tuple[str, ...], old: str, new: str) -> str:
    """Calls git (`words`) so that HEAD, index and files move from one commit to another.

    Nothing that differs may have local changes. Returns what a hook complained about after the
    move. When git fails (GitError), files and index are restored as far as that is possible.
    """
    if git.commit(path, "HEAD") != old:
        # Somebody committed while a rebase was prepared.
        raise git.GitError(path, words, git.Result(1, "", "fatal: HEAD has moved meanwhile"))
    result = git.run(path, *words, changing=True)
    if result.code == 0:
        return ""
    if git.commit(path, "HEAD") == new != old:
        return f"git {words[0]} moved it, but a hook failed: {result.words}"
    _restore(path, old, new)
    raise git.GitError(path, words, result)


def _restore(path: Path, old: str, new: str) -> None:
    """Restores the files of `old` where git has written those of `new`; others stay."""
    # Where git has come as far as the index, it goes back by itself; elsewhere this does nothing.
    git.run(path, "read-tree", "-m", "-u", new, old, changing=True)
    added, others = _written(path, old, new)
    for name in added:
        with contextlib.suppress(OSError):
            (path / name).unlink()
            os.removedirs((path / name).parent)
    text = "".join(f"{name}\0" for name in others)
    git.run(path, "checkout-index", "--force", "-z", "--stdin", text=text, changing=True)


def _written(path: Path, old: str, new: str) -> tuple[list[str], list[str]]:
    """Paths that git has written or removed: those that `old` does not have, and the others."""
    # Not in the git folder: its disk may be full.
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder, "index")
        read = git.run(path, "read-tree", new, index=index, changing=True)
        git.run(path, "update-index", "-q", "--refresh", index=index, changing=True)
        compared = git.run(path, *_DIFFERING, index=index)
    if read.code != 0 or compared.code != 0:
        return [], []
    not_new = set(compared.out.split("\0"))
    not_old = set(git.run(path, *_DIFFERING).out.split("\0"))
    words = ("diff-tree", "-r", "-z", "--no-renames", "--name-status", "--ignore-submodules")
    listed = git.run(path, *words, old, new).out.split("\0")[:-1]
    added, others = [], []
    for kind, name in zip(listed[::2], listed[1::2], strict=True):
        if not os.path.lexists(path / name):
            others += [name] if kind != "A" else []
        elif kind != "D" and (
            name not in not_new
            or ((kind == "A" or name in not_old) and _is_begun(path / name, path, f"{new}:{name}"))
        ):
            (added if kind == "A" else others).append(name)
    return added, others


def _is_begun(file: Path, path: Path, blob: str) -> bool:
    """Whether a file is the beginning of what git was about to write, as when the disk is full."""
    if file.is_symlink() or not file.is_file():
        return False
    whole = git.run(path, "cat-file", "--filters", blob)
    return whole.code == 0 and os.fsencode(whole.out).startswith(file.read_bytes())


class Integrated(NamedTuple):
    """The commit that a rebase or merge made, or files in conflict, or what git said."""

    new: str | None
    files: tuple[str, ...] = ()
    problem: str = ""


def integrate(
    path: Path, common_dir: Path, run: str, action: Action, head: str, target: str, message: str
) -> Integrated:
    """Makes the commits of a rebase or a merge in a temporary worktree; no ref moves.

    The user's files see only the result: a conflict is undone by deleting the worktree, and a
    process that is killed leaves nothing half done behind.
    """
    tree = journal.folder(common_dir) / f"{run}-tree"
    tree.parent.mkdir(exist_ok=True)
    _clean_up(path, common_dir)
    try:
        added = ("worktree", "add", "--quiet", "--detach", str(tree), head)
        git.change(path, *_NO_HOOKS, *added)
        if action is Action.REBASE:
            words = ("rebase", "--quiet", "--no-fork-point", target)
        else:
            words = ("merge", "--quiet", "--ff", "--no-edit", "-m", message, target)
        result = git.run(tree, *words, changing=True)
        if result.code == 0:
            return Integrated(git.ask(tree, "rev-parse", "HEAD"))
        unmerged = git.run(tree, "diff", "--name-only", "--diff-filter=U", "-z").out
        files = tuple(name for name in unmerged.split("\0") if name)
        return Integrated(None, files, "" if files else result.words)
    finally:
        _clean_up(path, common_dir)


def _clean_up(path: Path, common_dir: Path) -> None:
    """Removes our worktrees, also those of runs that were killed. The lock keeps others out."""
    places = (journal.folder(common_dir), common_dir / "worktrees")
    for name in {tree.name for place in places for tree in place.glob(_TREES)}:
        tree = str(places[0] / name)
        git.run(path, "worktree", "remove", "--force", "--force", tree, changing=True)
        for place in places:
            shutil.rmtree(place / name, ignore_errors=True)
