"""What state a repository is in. Nothing is changed, not even the index is refreshed."""

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from scripts.repos import git, journal
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
_LINKED_SUBMODULE = re.compile(r"expected submodule path '(.*)' not to be a symbolic link")
_LOCKS = ("index.lock", "HEAD.lock", "shallow.lock", "packed-refs.lock", "config.lock")


def folders(repo: Repo) -> Repo:
    """With settings and git folder; ended where no files are, or another repository decides."""
    path = repo.place
    git_dir = git.git_dir(path)
    try:
        repo = repo.having(git_dir=git_dir, config=git.config(path))
    except git.GitError:
        # `refs` says that git does not take it for a repository.
        repo = repo.having(git_dir=git_dir)
    config = dict(repo.config)
    is_bare = config.get("core.bare", "").lower() in ("true", "yes", "on", "1")
    # The settings of a repository do not hold for its worktrees.
    is_worktree = git.common_dir(git_dir) != git_dir
    if not git.is_checkout(path) or (not is_worktree and is_bare):
        remedy = "set `path` in the table to one of its worktrees"
        raise repo.skip("a bare repository, without files to update", remedy)
    if any(git.is_checkout(above) for above in path.parents):
        asked = git.run(path, "rev-parse", "--show-superproject-working-tree")
        outer = asked.out.removesuffix("\n")
        if outer:
            remedy = git.shell_command(outer, "submodule", "update", str(path))
            raise repo.skip(f"a submodule of {outer}, which decides its commit", remedy)
    files = os.path.realpath(git_dir / config.get("core.worktree", path))
    if not is_worktree and files != os.path.realpath(path):
        command = git.shell_command(path, "config", "core.worktree")
        raise repo.skip(f"its files are in {files}", command)
    return repo


def refs(repo: Repo) -> tuple[Repo, dict[str, str]]:
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
        raise repo.skip(words, git.shell_command(repo.place, "status"))
    for entry in listed.out.split("\0\n")[:-1]:
        name, commit, symref, worktree = entry.split("\0")
        if name.startswith("refs/heads/"):
            heads[name.removeprefix("refs/heads/")] = commit
            if worktree:
                elsewhere[name.removeprefix("refs/heads/")] = worktree
        elif symref:
            branch = branch or symref.removeprefix(f"refs/remotes/{remote}/")
        else:
            tracking[name] = commit
    common = git.common_dir(repo.git_dir)
    # A branch that another worktree rebases is not checked out there, but moves at the end.
    for file in common.glob("worktrees/*/rebase-*/head-name"):
        name = git.line(file).removeprefix("refs/heads/")
        elsewhere.setdefault(name, str(Path(git.line(file.parents[1] / "gitdir")).parent))
    shallow = (common / "shallow").exists()
    repo = repo.having(branches=heads, elsewhere=elsewhere, default_branch=branch, shallow=shallow)
    return repo, tracking


def work(repo: Repo, others: Iterable[Path]) -> Repo:
    """With HEAD and local work; ended where nothing can be updated.

    `others` are the checkouts of a run; inside this one they are no local work.
    """
    path = repo.place
    try:
        found = checkout(path)
    except git.GitError as error:
        repo = repo.having(head=git.commit(path, "HEAD"))
        linked = _LINKED_SUBMODULE.search(error.result.err)
        if linked:
            reason = f"submodule {linked[1]} is a link now, and git does not compare it"
            command = shlex.join(("ls", "-l", str(path / linked[1])))
            raise repo.skip(reason, command, "restore it, or commit its removal") from None
        if "index" not in error.result.err:
            raise
        index = str(repo.git_dir / "index")
        aside = shlex.join(("mv", index, f"{index}.damaged"))
        remedy = f"{aside} && {git.shell_command(path, 'reset')}"
        raise repo.skip(f"the index is damaged: {error.result.words}", remedy) from None
    known = set(others)
    untracked = tuple(name for name in found.local.untracked if path / name not in known)
    # What git says of this checkout itself is not its folder where the git folder is elsewhere.
    elsewhere = {name: place for name, place in repo.elsewhere.items() if name != found.branch}
    repo = repo.having(
        **{"head": found.head, "branch": found.branch, "elsewhere": elsewhere},
        local=found.local._replace(untracked=untracked),
        pending=waiting(path),
    )
    if found.head is None:
        raise repo.skip("no commit on the current branch", git.shell_command(path, "status"))
    return repo


class Checkout(NamedTuple):
    """What is checked out, and what a person did there."""

    head: str | None
    branch: str | None
    local: LocalWork


def checkout(path: Path) -> Checkout:
    """HEAD and local work of a repository or submodule, as git's status knows them."""
    git_dir = git.git_dir(path)
    pending = journal.pending(git_dir)
    listed = git.ask(
        path,
        # git would count commit by commit how far HEAD is from its upstream.
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
            name = entry.removeprefix("# branch.head ")
            branch = None if name == "(detached)" else name
        elif entry.startswith("1 "):
            _, letters, sub, _, mode, *_, name = entry.split(" ", 8)
            staged += letters[0] != "."
            # A repository in the place of a file is a change of the file.
            is_problem = sub[0] == "S" and sub != "S..." and mode == "160000"
            problem = _submodule_problem(path / name, sub, pending.get(name)) if is_problem else ""
            submodules += [(name, problem)] if problem else []
            unstaged += letters[1] != "." and not is_problem
            if letters[0] != "." or (letters[1] != "." and not is_problem):
                changed.append(name)
        elif entry.startswith("u "):
            conflicted += 1
            changed.append(entry.split(" ", 10)[10])
        elif entry.startswith("? "):
            untracked.append(entry[2:])
    local = unfinished(git_dir)._replace(
        **{"staged": staged, "unstaged": unstaged, "conflicted": conflicted},
        changed=tuple(changed),
        untracked=tuple(untracked),
        submodules=tuple(submodules),
    )
    return Checkout(head, branch, local)


def unfinished(git_dir: Path) -> LocalWork:
    """What is in progress, and which locks there are; read from the git folders alone."""
    words = [word for name, word in _IN_PROGRESS.items() if (git_dir / name).exists()]
    places = dict.fromkeys((git_dir, git.common_dir(git_dir)))
    locks = [place / name for name in _LOCKS for place in places if (place / name).exists()]
    return LocalWork(
        in_progress=tuple(dict.fromkeys(words)),
        locked=tuple(os.path.relpath(lock, git_dir) for lock in locks),
    )


def _submodule_problem(place: Path, flags: str, left_at: str | None) -> str:
    """The problem of a submodule, from the four letters of git's status.

    There is none when it, or one in it, is only where an earlier run left it.
    """
    words = []
    if flags[2] == "M" and checkout(place).local._replace(untracked=()).words():
        words.append("has changes")
    if flags[3] == "U":
        words.append(UNTRACKED)
    if flags[1] == "C" and (left_at is None or git.commit(place, "HEAD") != left_at):
        known = "is at another commit than recorded"
        words.append(known if is_published(place) else "has unpushed commits")
    return " and ".join(words)


def recorded(path: Path, commit: str = "HEAD") -> dict[str, tuple[str, str]]:
    """Submodules of a commit: path to name in .gitmodules and recorded commit."""
    names = {value: name for name, value in modules(path, commit, "path").items()}
    if not names:
        return {}
    found = {}
    tree = git.ask(path, "--literal-pathspecs", "ls-tree", "-z", commit, "--", *names)
    for entry in tree.split("\0"):
        about, _, place = entry.partition("\t")
        if about.startswith("160000 "):
            found[place] = (names[place], about.split()[2])
    return found


def modules(path: Path, commit: str, key: str) -> dict[str, str]:
    """The values of a key in the .gitmodules of a commit, by name of the submodule."""
    listed = git.run(path, "config", "--blob", f"{commit}:.gitmodules", "--list", "-z")
    pairs = [entry.partition("\n") for entry in listed.out.split("\0")]
    first, last = "submodule.", f".{key}"
    return {
        name[len(first) : -len(last)]: value
        for name, _, value in pairs
        if name.startswith(first) and name.endswith(last)
    }


def waiting(path: Path) -> dict[str, str | None]:
    """The submodules that a run left behind, and that are still where it left them.

    By path, with the commit that each was left at: None for one that has to be cloned.
    """
    found: dict[str, str | None] = {}
    pending = journal.pending(git.git_dir(path))
    records = recorded(path) if pending else {}
    for name in set(pending) & set(records):
        place, old = path / name, pending[name]
        is_there = git.is_checkout(place)
        now = git.commit(place, "HEAD") if is_there else None
        if (now == old and now != records[name][1]) or (is_there and waiting(place)):
            found[name] = old
    return found


def is_published(path: Path) -> bool:
    """Whether HEAD is in a branch or tag of a remote."""
    places = ("refs/remotes", "refs/tags")
    found = git.run(path, "for-each-ref", "--count=1", "--contains=HEAD", *places)
    return found.code == 0 and bool(found.out.strip())


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
