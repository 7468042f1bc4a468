"""What state a repository is in. Nothing is changed, not even the index is refreshed."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from scripts.repos import backup, git, layout, shown
from scripts.repos.model import UNTRACKED, LocalWork, Relation, RemoteChoice, RepoState

# Files of the git folder that tell what is under way.
_UNDER_WAY = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase or am",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
    "sequencer": "cherry-pick or revert",
}
_LOCKS = ("index.lock", "HEAD.lock", "shallow.lock", "packed-refs.lock", "config.lock")


def look(
    path: Path,
    choice: RemoteChoice,
    branch: str | None,
    config: Mapping[str, str],
    others: Iterable[Path] = (),
) -> RepoState:
    """Looks at a repository.

    Args:
      path: its folder.
      choice: of its remotes.
      branch: the upstream's default branch, where the table says it.
      config: its settings.
      others: checkouts of other repositories of the table; inside this one they are no local work.
    """
    without = _without_files(path, config)
    if without is not None:
        return RepoState(path, path, path, without[0], without[1:])
    try:
        head, current, local = _status(path, frozenset(others))
    except git.GitError as error:
        problem = f"git does not take it for a repository: {error.result.words}"
        return RepoState(path, path, path, problem, (shown.git(path, "status"),))
    state = _kind(path)
    if state.refusal:
        return state
    in_progress, locked = _under_way(state.git_dir, state.common_dir)
    local = local._replace(in_progress=in_progress, locked=locked)
    heads, elsewhere, tracking, remote_head = _refs(path, choice.official, branch)
    # What git says of this checkout itself is not its folder where the git folder is elsewhere.
    elsewhere.pop(current or "", None)
    state = state._replace(
        head=head,
        branch=current,
        branches=heads,
        elsewhere=elsewhere,
        tracking=tracking,
        remote_head=remote_head,
        ignore_case=_is_on(config, "core.ignorecase"),
        local=local,
        unfinished=backup.unfinished(state.git_dir),
    )
    if head is None:
        return state._replace(
            refusal="no commit on the current branch", remedy=(shown.git(path, "status"),)
        )
    return state


def _without_files(path: Path, config: Mapping[str, str]) -> tuple[str, str] | None:
    """Why there are no files here to update, and what to do about it; None when there are."""
    bare = "a bare repository, without files to update"
    worktree = "set `path` in the table to one of its worktrees"
    if not (path / ".git").exists():
        return bare, worktree
    git_dir = layout.git_dir(path)
    # What the repository is set to is not so for its worktrees.
    if layout.common_dir(git_dir) != git_dir:
        return None
    if _is_on(config, "core.bare"):
        return bare, worktree
    files = os.path.realpath(git_dir / config.get("core.worktree", path))
    if files == os.path.realpath(path):
        return None
    return f"its files are in {files}", shown.git(path, "config", "core.worktree")


def _is_on(config: Mapping[str, str], key: str) -> bool:
    return config.get(key, "").lower() in ("true", "yes", "on", "1")


def _kind(path: Path) -> RepoState:
    """Where its parts are; with a refusal where another repository decides what it is at."""
    git_dir = layout.git_dir(path)
    common = layout.common_dir(git_dir)
    state = RepoState(path, git_dir, common, shallow=(common / "shallow").exists())
    if not layout.is_inside_another(path):
        return state
    superproject = git.ask(path, "rev-parse", "--show-superproject-working-tree")
    if not superproject:
        return state
    return state._replace(
        refusal=f"a submodule of {superproject}, which decides its commit",
        remedy=(shown.git(superproject, "submodule", "update", str(path)),),
    )


def _under_way(git_dir: Path, common_dir: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    names = [word for name, word in _UNDER_WAY.items() if (git_dir / name).exists()]
    folders = dict.fromkeys((git_dir, common_dir))
    files = [folder / name for name in _LOCKS for folder in folders if (folder / name).exists()]
    locked = [os.path.relpath(file, git_dir) for file in files]
    return tuple(dict.fromkeys(names)), tuple(locked)


def _under_way_in(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    git_dir = layout.git_dir(path)
    return _under_way(git_dir, git_dir)


def under_way_words(path: Path) -> str:
    """What is in progress or locked in a checkout, in words; also in a submodule."""
    in_progress, locked = _under_way_in(path)
    return LocalWork(in_progress=in_progress, locked=locked).words()


class Checkout(NamedTuple):
    """What is checked out in a submodule, and what a person did there."""

    head: str | None
    branch: str | None
    local: LocalWork


def checkout(path: Path) -> Checkout:
    """Looks at a submodule."""
    in_progress, locked = _under_way_in(path)
    head, branch, local = _status(path, frozenset())
    return Checkout(head, branch, local._replace(in_progress=in_progress, locked=locked))


def _status(path: Path, others: frozenset[Path]) -> tuple[str | None, str | None, LocalWork]:
    """Commit and branch of HEAD, and local work as far as git's status knows it."""
    listed = git.ask(
        path,
        # How far it is from its upstream would be counted commit by commit, and is not asked.
        *("status", "--porcelain=v2", "--branch", "--no-ahead-behind", "-z", "--no-renames"),
        *("--untracked-files=normal", "--ignored=no", "--ignore-submodules=none"),
    )
    head = branch = None
    staged = unstaged = conflicted = 0
    untracked: list[str] = []
    submodules: list[tuple[str, str]] = []
    for entry in listed.split("\0"):
        if entry.startswith("# branch.oid "):
            head = None if entry.endswith("(initial)") else entry.rpartition(" ")[2]
        elif entry.startswith("# branch.head "):
            name = entry[len("# branch.head ") :]
            branch = None if name == "(detached)" else name
        elif entry.startswith("1 "):
            _, changed, sub, *_, name = entry.split(" ", 8)
            staged += changed[0] != "."
            if sub[0] == "S" and sub != "S...":
                submodules.append((name, _submodule_words(path / name, sub)))
            elif changed[1] != ".":
                unstaged += 1
        elif entry.startswith("u "):
            conflicted += 1
        elif entry.startswith("? "):
            name = entry[2:]
            if (path / name) not in others:
                untracked.append(name)
    work = LocalWork(staged, unstaged, conflicted, tuple(untracked), tuple(submodules))
    return head, branch, work


def _submodule_words(path: Path, flags: str) -> str:
    """What is wrong in a submodule, from the four letters of git's status."""
    words = []
    if flags[2] == "M":
        words.append("has changes")
    if flags[3] == "U":
        words.append(UNTRACKED)
    if flags[1] == "C":
        known = "is at another commit than recorded"
        words.append(known if published(path) else "has unpushed commits")
    return " and ".join(words)


def published(path: Path) -> bool:
    """Whether HEAD is in a branch or tag of a remote."""
    places = ("refs/remotes", "refs/tags")
    found = git.run(path, "for-each-ref", "--count=1", "--contains=HEAD", *places)
    return found.code == 0 and bool(found.out.strip())


def _refs(
    path: Path, remote: str | None, branch: str | None
) -> tuple[dict[str, str], dict[str, str], dict[str, str], str | None]:
    """Local branches, where others have them checked out, the remote's branch, its default."""
    patterns = ["refs/heads"]
    if remote is not None:
        wanted = f"refs/remotes/{remote}/{branch}" if branch else f"refs/remotes/{remote}"
        patterns += [wanted, f"refs/remotes/{remote}/HEAD"]
    # Names of branches hold characters that Python takes for the end of a line, paths real ones.
    form = "%(refname)%00%(objectname)%00%(symref)%00%(worktreepath)%00"
    heads, elsewhere, tracking, remote_head = {}, {}, {}, None
    listed = git.ask(path, "for-each-ref", f"--format={form}", *patterns) + "\n"
    for entry in listed.split("\0\n")[:-1]:
        name, commit, symref, worktree = entry.split("\0")
        if name.startswith("refs/heads/"):
            heads[name[len("refs/heads/") :]] = commit
            if worktree:
                elsewhere[name[len("refs/heads/") :]] = worktree
        elif symref:
            remote_head = symref.removeprefix(f"refs/remotes/{remote}/")
        else:
            tracking[name] = commit
    return heads, elsewhere, tracking, remote_head


def relation(path: Path, one: str, other: str) -> Relation:
    """How one commit stands to another."""
    if one == other:
        return Relation()
    counted = git.ask(path, "rev-list", "--left-right", "--count", f"{one}...{other}").split()
    ahead, behind = int(counted[0]), int(counted[1])
    if not ahead or not behind:
        return Relation(ahead, behind)
    related = git.run(path, "merge-base", one, other).code == 0
    merges = git.ask(path, "rev-list", "--count", "--merges", f"{other}..{one}") != "0"
    return Relation(ahead, behind, related, merges)
