"""What state a repository is in. Nothing is changed, not even the index is refreshed."""

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from scripts.repos import git, journal, layout
from scripts.repos.model import LocalWork, Relation, Repo

# What is said of a submodule that holds nothing worse than files that git does not know.
UNTRACKED = "has untracked files"

# Files of the git folder that tell what is in progress.
_IN_PROGRESS = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase or am",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
    "sequencer": "cherry-pick or revert",
}
_LOCKS = ("index.lock", "HEAD.lock", "shallow.lock", "packed-refs.lock", "config.lock")


def folders(repo: Repo, config: Mapping[str, str]) -> Repo:
    """With the git folders; ended where there are no files, or another repository decides."""
    path = repo.place
    git_dir = layout.git_dir(path)
    repo = repo.having(git_dir=git_dir, common_dir=layout.common_dir(git_dir))
    bare = "a bare repository, without files to update"
    worktree = "set `path` in the table to one of its worktrees"
    if not (path / ".git").exists():
        return repo.skipped(bare, worktree)
    if layout.is_inside_another(path):
        asked = git.run(path, "rev-parse", "--show-superproject-working-tree")
        outer = asked.out.removesuffix("\n")
        if outer:
            remedy = git.shell_command(outer, "submodule", "update", str(path))
            return repo.skipped(f"a submodule of {outer}, which decides its commit", remedy)
    # The settings of a repository do not hold for its worktrees.
    if repo.common_dir != git_dir:
        return repo
    if _is_on(config, "core.bare"):
        return repo.skipped(bare, worktree)
    files = os.path.realpath(git_dir / config.get("core.worktree", path))
    if files != os.path.realpath(path):
        return repo.skipped(
            f"its files are in {files}", git.shell_command(path, "config", "core.worktree")
        )
    return repo


def refs(repo: Repo, config: Mapping[str, str]) -> tuple[Repo, dict[str, str]]:
    """With local branches, and where they are checked out; and the remote-tracking refs."""
    remote, branch = repo.official, repo.entry.branch
    patterns = ["refs/heads"]
    if remote is not None:
        wanted = f"refs/remotes/{remote}/{branch}" if branch else f"refs/remotes/{remote}"
        patterns += [wanted, f"refs/remotes/{remote}/HEAD"]
    # Names of branches may hold what Python takes for a line end, and paths real line ends.
    form = "%(refname)%00%(objectname)%00%(symref)%00%(worktreepath)%00"
    heads, elsewhere, tracking = {}, {}, {}
    listed = git.run(repo.place, "for-each-ref", f"--format={form}", *patterns)
    if listed.code != 0:
        words = f"git does not take it for a repository: {listed.words}"
        return repo.skipped(words, git.shell_command(repo.place, "status")), {}
    for entry in listed.out.split("\0\n")[:-1]:
        name, commit, symref, worktree = entry.split("\0")
        if name.startswith("refs/heads/"):
            heads[name[len("refs/heads/") :]] = commit
            if worktree:
                elsewhere[name[len("refs/heads/") :]] = worktree
        elif symref:
            branch = branch or symref.removeprefix(f"refs/remotes/{remote}/")
        else:
            tracking[name] = commit
    repo = repo.having(
        branches=heads,
        elsewhere=elsewhere,
        default_branch=branch,
        shallow=(repo.common_dir / "shallow").exists(),
        ignore_case=_is_on(config, "core.ignorecase"),
    )
    return repo, tracking


def work(repo: Repo, others: Iterable[Path]) -> Repo:
    """With HEAD and local work; ended where nothing can be updated.

    `others` are checkouts of other repositories; inside this one they are no local work.
    """
    path = repo.place
    pending = journal.pending(repo.git_dir)
    try:
        seen = checkout(path, repo.common_dir, pending)
    except git.GitError as error:
        if "index" not in error.result.err:
            raise
        index = str(repo.git_dir / "index")
        aside = shlex.join(("mv", index, f"{index}.damaged"))
        return repo.skipped(
            f"the index is damaged: {error.result.words}",
            f"{aside} && {git.shell_command(path, 'reset')}",
        )
    known = set(others)
    untracked = tuple(name for name in seen.local.untracked if path / name not in known)
    elsewhere = {name: place for name, place in repo.elsewhere.items() if name != seen.branch}
    repo = repo.having(
        head=seen.head,
        branch=seen.branch,
        # What git says of this checkout itself is not its folder where the git folder is elsewhere.
        elsewhere=elsewhere,
        local=seen.local._replace(untracked=untracked),
        pending=pending,
    )
    if seen.head is None:
        return repo.skipped("no commit on the current branch", git.shell_command(path, "status"))
    return repo


def _is_on(config: Mapping[str, str], key: str) -> bool:
    return config.get(key, "").lower() in ("true", "yes", "on", "1")


class Checkout(NamedTuple):
    """What is checked out, and what a person did there."""

    head: str | None
    branch: str | None
    local: LocalWork


def checkout(
    path: Path, common_dir: Path | None = None, pending: Mapping[str, str | None] = {}
) -> Checkout:
    """HEAD and local work of a repository or submodule, as git's status knows them.

    `pending` submodules are left behind by an interrupted run, which is no local work.
    """
    git_dir = layout.git_dir(path)
    listed = git.ask(
        path,
        # How far it is from its upstream would be counted commit by commit, and is not asked.
        *("status", "--porcelain=v2", "--branch", "--no-ahead-behind", "-z", "--no-renames"),
        *("--untracked-files=normal", "--ignored=no", "--ignore-submodules=none"),
    )
    head = branch = None
    staged = unstaged = conflicted = 0
    changed: list[str] = []
    untracked: list[str] = []
    submodules: list[tuple[str, str]] = []
    for entry in listed.split("\0"):
        if entry.startswith("# branch.oid "):
            head = None if entry.endswith("(initial)") else entry.rpartition(" ")[2]
        elif entry.startswith("# branch.head "):
            name = entry[len("# branch.head ") :]
            branch = None if name == "(detached)" else name
        elif entry.startswith("1 "):
            _, letters, sub, _, mode, *_, name = entry.split(" ", 8)
            staged += letters[0] != "."
            # A repository in the place of a file is a change of the file.
            is_problem = sub[0] == "S" and sub != "S..." and mode == "160000"
            problem = _submodule_problem(path, name, sub, pending) if is_problem else ""
            submodules += [(name, problem)] if problem else []
            unstaged += letters[1] != "." and not is_problem
            if letters[0] != "." or (letters[1] != "." and not is_problem):
                changed.append(name)
        elif entry.startswith("u "):
            conflicted += 1
            changed.append(entry.split(" ", 10)[10])
        elif entry.startswith("? "):
            untracked.append(entry[2:])
    local = unfinished(git_dir, common_dir)._replace(
        staged=staged,
        unstaged=unstaged,
        conflicted=conflicted,
        changed=tuple(changed),
        untracked=tuple(untracked),
        submodules=tuple(submodules),
    )
    return Checkout(head, branch, local)


def unfinished(git_dir: Path, common_dir: Path | None = None) -> LocalWork:
    """What is in progress, and which locks there are; read from the git folders alone."""
    words = [word for name, word in _IN_PROGRESS.items() if (git_dir / name).exists()]
    places = dict.fromkeys((git_dir, common_dir or git_dir))
    locks = [place / name for name in _LOCKS for place in places if (place / name).exists()]
    return LocalWork(
        in_progress=tuple(dict.fromkeys(words)),
        locked=tuple(os.path.relpath(lock, git_dir) for lock in locks),
    )


def _submodule_problem(path: Path, name: str, flags: str, pending: Mapping[str, str | None]) -> str:
    """The problem of a submodule, from the four letters of git's status; empty when it is ours."""
    place, words = path / name, []
    if flags[2] == "M" and not _is_only_behind(place, name, pending):
        words.append("has changes")
    if flags[3] == "U":
        words.append(UNTRACKED)
    if flags[1] == "C" and (name not in pending or git.commit(place, "HEAD") != pending[name]):
        known = "is at another commit than recorded"
        words.append(known if is_published(place) else "has unpushed commits")
    return " and ".join(words)


def _is_only_behind(place: Path, name: str, pending: Mapping[str, str | None]) -> bool:
    """Whether all that is changed in a submodule are submodules in it that are left behind."""
    inner = {
        key[len(name) + 1 :]: old for key, old in pending.items() if key.startswith(f"{name}/")
    }
    if not inner:
        return False
    local = checkout(place, pending=inner).local
    return not local._replace(untracked=()).words()


def is_published(path: Path) -> bool:
    """Whether HEAD is in a branch or tag of a remote."""
    places = ("refs/remotes", "refs/tags")
    found = git.run(path, "for-each-ref", "--count=1", "--contains=HEAD", *places)
    return found.code == 0 and bool(found.out.strip())


def own_commits(path: Path) -> int:
    """How many commits of HEAD no branch, tag or remote-tracking branch has."""
    others = ("--not", "--branches", "--tags", "--remotes")
    return int(git.ask(path, "rev-list", "--count", "HEAD", *others))


def relation(path: Path, one: str, other: str) -> Relation:
    """How one commit relates to another."""
    if one == other:
        return Relation()
    counted = git.ask(path, "rev-list", "--left-right", "--count", f"{one}...{other}").split()
    ahead, behind = int(counted[0]), int(counted[1])
    if not ahead or not behind:
        return Relation(ahead, behind)
    related = git.run(path, "merge-base", one, other).code == 0
    merges = git.ask(path, "rev-list", "--count", "--merges", f"{other}..{one}") != "0"
    return Relation(ahead, behind, related, merges)
