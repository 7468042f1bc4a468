"""Moves HEAD with index and files, and prepares rebases and merges away from the user's files.

git checks for local work before it writes anything. It can still fail: a filter such as
git-lfs is missing, the disk is full, a ref is locked. Then files are written and HEAD stays, and
`head` restores the files as far as that is possible.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from scripts.repos import git, obstacles
from scripts.repos.model import Action, Ended, Repo, Status, shortened

# The name of our temporary worktree; no worktree of a person has it.
_TREE = "update-repos-tree"
# What git prints when it could not write a file, although its exit status is 0.
_NOT_WRITTEN = re.compile(r"(?m)^(error|warning): unable to (unlink|create|write)")
_CHECKOUT = ("checkout", "--quiet", "--no-overwrite-ignore")


def head(path: Path, old: str, new: str, to: str) -> str:
    """Moves HEAD, index and files from one commit to another.

    Nothing that differs may have local changes. `to` is the branch that moves with HEAD, or that is
    at the new commit; without one HEAD is detached. Returns what a hook complained about after the
    move. When git fails (GitError), files and index are restored as far as that is possible.
    """
    words = _command(path, old, new, to)
    result = git.run(path, *words)
    has_moved = git.commit(path, "HEAD") == new != old
    if has_moved and _NOT_WRITTEN.search(result.err):
        raise git.Problem(f"HEAD has moved, but not all files: {result.message}")
    if result.code == 0:
        return ""
    if has_moved:
        return f"HEAD has moved, but a hook failed: {result.message}"
    # Before files are restored: that may free a disk that was full.
    error = git.GitError(path, ("checkout" if "checkout" in words else "merge",), result)
    # git refuses before it writes anything; a file there that looks like ours is the user's.
    if "Aborting" not in result.err:
        _restore(path, old, new)
    raise error


def _command(path: Path, old: str, new: str, to: str) -> tuple[str, ...]:
    """The call of git that moves HEAD, and refuses to overwrite local work."""
    if not to:
        return (*_CHECKOUT, "--detach", new)
    if git.branch(path) != to:
        return (*_CHECKOUT, to, "--")
    if git.run(path, "merge-base", "--is-ancestor", old, new).code == 0:
        # The options of the branch could ask for another strategy, or a stash that unstages files.
        options = ("-c", f"branch.{to}.mergeOptions=")
        return (*options, "merge", "--quiet", "--ff-only", "--no-overwrite-ignore", new)
    # Unlike `reset --keep` it keeps what is staged.
    return (*_CHECKOUT, "--no-track", "-B", to, new, "--")


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
    """Checks out a commit where a clone ended before git had written all files, and the index.

    Files that are there stay: one that git wrote in part is a local change then.
    """
    git.ask(place, "update-ref", "--no-deref", "HEAD", commit)
    git.ask(place, "read-tree", commit)
    missing = git.ask(place, "ls-files", "--deleted", "-z")
    git.ask(place, "checkout-index", "-z", "--stdin", text=missing)


def _remove_written(path: Path, names: Iterable[str], commit: str) -> None:
    """Removes files of a commit that git wrote, as far as it came."""
    # Attributes last: git converts the others as they say.
    for name in sorted(names, key=lambda name: Path(name).name == ".gitattributes"):
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


def integrate(repo: Repo) -> Repo:
    """With the commit `new` of a rebase or a merge, made in a temporary worktree; no ref moves.

    A conflict is undone by deleting the worktree, and a process that is killed leaves nothing half
    done among the user's files. Raises Ended when there is no such commit.
    """
    path, target, verb = repo.path, repo.target or "", repo.action.name.lower()
    tree = git.common_dir(path) / _TREE
    remove_tree(path)
    try:
        added = ("worktree", "add", "--quiet", "--detach", str(tree), repo.head or "")
        git.ask(path, "-c", "core.hooksPath=/dev/null", *added)
        kind = "commit" if repo.pinned_by else "remote-tracking branch"
        message = f"Merge {kind} '{repo.target_ref}' into {repo.branch}"
        words = {
            Action.REBASE: ["rebase", "--quiet", "--no-fork-point", target],
            Action.MERGE: ["merge", "--quiet", "--ff", "--no-edit", "-m", message, target],
        }
        result = git.run(tree, *words[repo.action])
        if result.code == 0:
            return repo._replace(new=git.ask(tree, "rev-parse", "HEAD"))
        files = git.names(tree, "diff", "--name-only", "--diff-filter=U", "-z")
    finally:
        remove_tree(path)
    again = repo.command(verb, repo.target_ref)
    if not files:
        raise Ended(repo.ended(Status.FAILED, f"{verb}: {result.message}", again))
    resume = f"{repo.command('add', 'FILES')} && {repo.command(verb, '--continue')}"
    verbs = f"{repo.action.value} {repo.target_name}"
    reason = f"{verbs}: conflicts in {shortened(files, 5)}; nothing was changed"
    raise Ended(repo.skipped(reason, again, resume, files=tuple(files)))


def remove_tree(path: Path) -> None:
    """Removes our temporary worktree, also that of a killed run. The lock keeps others out."""
    common = git.common_dir(path)
    for place in (common / _TREE, common / "worktrees" / _TREE):
        shutil.rmtree(place, ignore_errors=True)
