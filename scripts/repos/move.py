"""Moves HEAD with index and files, and prepares rebases and merges away from the user's files.

git checks for local work before it writes anything. It can still fail: a filter such as
git-lfs is missing, the disk is full, a ref is locked. Then files are written and HEAD stays, and
`to` restores the files.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from scripts.repos import git, journal, obstacles
from scripts.repos.model import Action, Ended, Repo, Status, shortened

_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
# Names that no worktree of a person has.
_TREES = "????????T??????-??????-tree"
# git ends with 0 nevertheless.
_NOT_WRITTEN = re.compile(r"(?m)^(error|warning): unable to (unlink|create|write)")
_CHECKOUT = ("checkout", "--quiet", "--no-overwrite-ignore")


def fast_forward(branch: str, commit: str) -> tuple[str, ...]:
    """Moves the checked-out branch to a commit that contains it."""
    # The options of the branch could ask for another strategy, or a stash that unstages files.
    options = ("-c", f"branch.{branch}.mergeOptions=")
    return (*options, "merge", "--quiet", "--ff-only", "--no-overwrite-ignore", commit)


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
    verb = ("checkout" if words[0] == "checkout" else "merge",)
    if git.commit(path, "HEAD") != old:
        # Somebody committed while a rebase was prepared.
        raise git.GitError(path, verb, git.Result(1, "", "fatal: HEAD has moved meanwhile"))
    result = git.run(path, *words)
    has_moved = git.commit(path, "HEAD") == new != old
    if has_moved and _NOT_WRITTEN.search(result.err):
        err = f"error: HEAD has moved, but not all files: {result.words}"
        raise git.GitError(path, verb, git.Result(1, "", err))
    if result.code == 0:
        return ""
    if has_moved:
        return f"HEAD has moved, but a hook failed: {result.words}"
    # Before files are restored: that may free a disk that was full.
    error = git.GitError(path, verb, result)
    # git refuses before it writes anything; a file there that looks like ours is the user's.
    if "Aborting" not in result.err:
        _restore(path, old, new)
    raise error


def _restore(path: Path, old: str, new: str) -> None:
    """Restores the files of `old` where git has written those of `new`; others stay."""
    # Where git has come as far as the index, it goes back by itself; elsewhere this does nothing.
    git.run(path, "read-tree", "-m", "-u", new, old)
    changes, no_file = obstacles.changes(path, old, new), ("", obstacles.SUBMODULE)
    _remove_written(path, [c.name for c in changes if c.new_mode not in no_file], new)
    lost = [f"{c.name}\0" for c in changes if c.old_mode not in no_file]
    # Without --force: files that are there stay.
    git.run(path, "checkout-index", "-z", "--stdin", text="".join(lost))


def finish_checkout(place: Path, commit: str) -> None:
    """Checks out a commit where a clone ended before git had written all files, and the index."""
    listed = git.names(place, "ls-tree", "-r", "-z", "--name-only", commit)
    _remove_written(place, listed, commit)
    git.ask(place, *head_to(commit))


def _remove_written(path: Path, names: Iterable[str], commit: str) -> None:
    """Removes files of a commit that git wrote, in part when the disk was full."""
    for name in names:
        file = path / name
        if not os.path.lexists(file):
            continue
        whole = git.run(path, "cat-file", "--filters", f"{commit}:{name}")
        content = os.fsencode(whole.out)
        if file.is_symlink():
            is_ours = content == os.fsencode(os.readlink(file))
        else:
            is_ours = file.is_file() and content.startswith(file.read_bytes())
        if whole.code == 0 and is_ours:
            with contextlib.suppress(OSError):
                file.unlink()
                os.removedirs(file.parent)


def integrate(repo: Repo, run: str) -> Repo:
    """With the commit `new` of a rebase or a merge, made in a temporary worktree; no ref moves.

    A conflict is undone by deleting the worktree, and a process that is killed leaves nothing half
    done among the user's files. Raises Ended when there is no such commit.
    """
    path, target, verb = repo.place, repo.target or "", repo.action.value
    common_dir = git.common_dir(path)
    tree = journal.folder(common_dir) / f"{run}-tree"
    tree.parent.mkdir(exist_ok=True)
    _clean_up(path, common_dir)
    try:
        added = ("worktree", "add", "--quiet", "--detach", str(tree), repo.head or "")
        git.ask(path, *_NO_HOOKS, *added)
        words = ("rebase", "--quiet", "--no-fork-point", target)
        if repo.action is Action.MERGE:
            kind = "commit" if repo.pinned_by else "remote-tracking branch"
            message = f"Merge {kind} '{repo.target_ref}' into {repo.branch}"
            words = ("merge", "--quiet", "--ff", "--no-edit", "-m", message, target)
        result = git.run(tree, *words)
        if result.code == 0:
            return repo._replace(new=git.ask(tree, "rev-parse", "HEAD"))
        files = git.names(tree, "diff", "--name-only", "--diff-filter=U", "-z")
    finally:
        _clean_up(path, common_dir)
    again = repo.command(verb, repo.target_ref)
    if not files:
        raise Ended(repo.ended(Status.FAILED, f"{verb}: {result.words}", again))
    resume = f"{repo.command('add', 'FILES')} && {repo.command(verb, '--continue')}"
    reason = (
        f"{verb} onto {repo.target_name} conflicts in {shortened(files, 5)}; nothing was changed"
    )
    raise repo.skip(reason, again, resume, files=tuple(files))


def _clean_up(path: Path, common_dir: Path) -> None:
    """Removes our worktrees, also those of runs that were killed. The lock keeps others out."""
    places = (journal.folder(common_dir), common_dir / "worktrees")
    for name in {tree.name for place in places for tree in place.glob(_TREES)}:
        tree = str(places[0] / name)
        git.run(path, "worktree", "remove", "--force", "--force", tree)
        for place in places:
            shutil.rmtree(place / name, ignore_errors=True)
