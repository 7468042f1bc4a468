"""Rebase and merge of a feature branch, in a worktree of their own.

The user's files see nothing but the result: a conflict is undone by throwing the worktree away,
and a process that is killed leaves nothing half done behind.
"""

from pathlib import Path
from typing import NamedTuple

from scripts.repos import backup, git
from scripts.repos.model import Action

_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")


class Brought(NamedTuple):
    """How it ended.

    Attributes:
      new: the commit that the branch should have; None when it did not work.
      files: in conflict.
      problem: what git said, when there is no conflict either.
    """

    new: str | None
    files: tuple[str, ...] = ()
    problem: str = ""


def prepare(
    path: Path, common_dir: Path, run: str, action: Action, head: str, target: str, message: str
) -> Brought:
    """Makes the commits that a rebase or a merge gives; no ref moves.

    Args:
      path: the checkout.
      common_dir: its common git folder.
      run: name of the run.
      action: REBASE or MERGE.
      head: commit of the branch.
      target: commit to bring it to.
      message: of the merge.
    """
    tree = backup.folder(common_dir) / f"{run}-tree"
    tree.parent.mkdir(exist_ok=True)
    _clean_up(path, common_dir)
    added = ("worktree", "add", "--quiet", "--detach", str(tree), head)
    try:
        git.change(path, *_NO_HOOKS, *added)
        if action is Action.REBASE:
            words = ("rebase", "--quiet", "--no-fork-point", target)
        else:
            words = ("merge", "--quiet", "--ff", "--no-edit", "-m", message, target)
        result = git.run(tree, *words, changing=True)
        if result.code == 0:
            return Brought(git.ask(tree, "rev-parse", "HEAD"))
        unmerged = git.run(tree, "diff", "--name-only", "--diff-filter=U", "-z").out
        files = tuple(name for name in unmerged.split("\0") if name)
        return Brought(None, files, "" if files else result.words)
    finally:
        _clean_up(path, common_dir)


def _clean_up(path: Path, common_dir: Path) -> None:
    """Removes our worktrees, also those of runs that were killed. Nobody works in them."""
    import shutil

    for tree in backup.folder(common_dir).glob("*-tree"):
        git.run(path, "worktree", "remove", "--force", str(tree), changing=True)
        shutil.rmtree(tree, ignore_errors=True)
        git.run(path, "worktree", "prune", changing=True)
