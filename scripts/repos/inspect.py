"""What state a repository is in. Nothing is changed, not even the index is refreshed."""

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from scripts.repos import git, journal
from scripts.repos.model import Ended, LocalWork, Repo

# The problem of a submodule that holds files that git does not know, and no other local work.
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


def folder(repo: Repo) -> Repo:
    """Raises Ended for a bare repository, and for a submodule, whose commit another one decides."""
    path = repo.path
    result = git.run(path, "rev-parse", "--show-toplevel", "--show-superproject-working-tree")
    if "must be run in a work tree" in result.err:
        remedy = "set `path` in the table to one of its worktrees"
        raise Ended(repo.skipped("a bare repository, without files to update", remedy))
    if result.code != 0:
        reason = f"git does not accept it as a repository: {result.message}"
        raise Ended(repo.skipped(reason, repo.command("status")))
    outer = result.out.removeprefix(f"{path}\n").removesuffix("\n")
    if not result.out.startswith(f"{path}\n"):
        command = repo.command("config", "core.worktree")
        raise Ended(repo.skipped(f"its files are in {outer}", command))
    if outer:
        remedy = git.shell_command(outer, "submodule", "update", str(path))
        raise Ended(repo.skipped(f"a submodule of {outer}, which decides its commit", remedy))
    return repo


def refs(repo: Repo) -> Repo:
    """Adds local branches, where they are checked out, and the upstream's default branch."""
    remote, default = f"refs/remotes/{repo.official}/", repo.entry.branch
    # Names of branches may hold what Python takes for a line end, and paths real line ends.
    form = "--format=%(refname)%00%(symref)%00%(objectname)%00%(worktreepath)%00"
    listed = git.ask(repo.path, "for-each-ref", form, "refs/heads", f"{remote}HEAD")
    branches: dict[str, str] = {}
    elsewhere: dict[str, str] = {}
    for entry in f"{listed}\n".split("\0\n")[:-1]:
        name, symref, commit, worktree = entry.split("\0")
        branch = name.removeprefix("refs/heads/")
        if branch == name:
            default = default or symref.removeprefix(remote) or None
        elif not symref:
            # Another name of a branch does not move: the branch may be checked out.
            branches[branch] = commit
            elsewhere |= {branch: worktree} if worktree else {}
    common = git.common_dir(repo.path)
    # A branch that another worktree rebases is not checked out there, but moves at the end.
    for tree in (common, *common.glob("worktrees/*")):
        link = tree / "gitdir"
        place = (Path(git.line(link)) if link.is_file() else common).parent
        for file in tree.glob("rebase-*/head-name"):
            elsewhere.setdefault(git.line(file).removeprefix("refs/heads/"), str(place))
    return repo._replace(branches=branches, elsewhere=elsewhere, default_branch=default)


def work(repo: Repo, others: Collection[Path]) -> Repo:
    """Adds refs, HEAD and local work; raises Ended where nothing can be updated.

    `others`: the checkouts of this run, which do not count as untracked files.
    """
    repo, path = refs(repo), repo.path
    try:
        head, branch, local = checkout(path)
    except git.GitError as error:
        repo = repo._replace(head=git.commit(path, "HEAD"), branch=git.branch(path))
        reason = f"git cannot compare its files: {error.result.message}"
        raise Ended(repo.skipped(reason, repo.command("status"))) from None
    untracked = [name for name in local.untracked if path / name not in others]
    local = local._replace(untracked=untracked)
    # What git says of this checkout itself is not its folder where the git folder is elsewhere.
    elsewhere = {name: place for name, place in repo.elsewhere.items() if name != branch}
    repo = repo._replace(head=head, branch=branch, local=local)
    repo = repo._replace(elsewhere=elsewhere, pending=waiting(path))
    if head is None:
        raise Ended(repo.skipped("no commit on the current branch", repo.command("status")))
    return repo


def checkout(path: Path) -> tuple[str | None, str | None, LocalWork]:
    """HEAD, branch and local work of a repository or submodule, as git's status knows them."""
    pending = journal.pending(path)
    # git would count commit by commit how far HEAD is from its upstream.
    words = ("status", "--porcelain=v2", "--branch", "--no-ahead-behind", "-z", "--no-renames")
    which = ("--untracked-files=normal", "--ignored=no", "--ignore-submodules=none")
    listed = git.names(path, *words, *which)
    about = dict(entry[2:].split(" ", 1) for entry in listed if entry[0] == "#")
    head = None if about["branch.oid"] == "(initial)" else about["branch.oid"]
    branch = None if about["branch.head"] == "(detached)" else about["branch.head"]
    staged, unstaged, submodules = [], [], []
    for entry in listed:
        if entry[0] == "1":
            _, letters, flags, _, mode, *_, name = entry.split(" ", 8)
            if letters[0] != ".":
                staged.append(name)
            # A repository in the place of a file is a change of the file.
            if flags[0] == "S" and flags != "S..." and mode == "160000":
                submodules.append((name, _submodule_problem(path / name, flags, pending.get(name))))
            elif letters[1] != ".":
                unstaged.append(name)
    local = unfinished(path)._replace(
        staged=staged,
        unstaged=unstaged,
        conflicted=[entry.split(" ", 10)[10] for entry in listed if entry[0] == "u"],
        untracked=[entry[2:] for entry in listed if entry[0] == "?"],
        submodules={name: problem for name, problem in submodules if problem},
    )
    return head, branch, local


def hidden(path: Path) -> list[str]:
    """Files that a flag of the index hides from git, except those that are not there.

    Without a sparse checkout a file that is not there was removed by the user, and counts.
    """
    listed = [entry.partition(" ") for entry in git.names(path, "ls-files", "-v", "-z")]
    flagged = [name for flag, _, name in listed if flag.islower() or flag == "S"]
    if dict(git.config(path)).get("core.sparsecheckout") != "true":
        return flagged
    return [name for name in flagged if os.path.lexists(path / name)]


def unfinished(path: Path) -> LocalWork:
    """Operations in progress, and lock files; read from the git folders alone."""
    git_dir = git.git_dir(path)
    words = [word for name, word in _IN_PROGRESS.items() if (git_dir / name).exists()]
    places = dict.fromkeys((git_dir, git.common_dir(path)))
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
    if flags[2] == "M" and checkout(place)[2]._replace(untracked=()).describe():
        words.append("has changes")
    if flags[3] == "U":
        words.append(UNTRACKED)
    if flags[1] == "C" and (left_at is None or git.commit(place, "HEAD") != left_at):
        words.append("is at another commit than recorded")
    return " and ".join(words)


def recorded(path: Path, commit: str = "HEAD") -> dict[str, tuple[str, str]]:
    """Submodules of a commit: path to name in .gitmodules and recorded commit.

    Those that git would not accept are left out, wherever submodules are read.
    """
    names = {value: name for name, value in modules(path, commit, "path").items()}
    names = {place: name for place, name in names.items() if _is_safe(path, place, name)}
    if not names:
        return {}
    found = {}
    for entry in git.names(path, "--literal-pathspecs", "ls-tree", "-z", commit, "--", *names):
        about, _, place = entry.partition("\t")
        if about.startswith("160000 "):
            found[place] = (names[place], about.split()[2])
    return found


def unsafe(path: Path, commit: str) -> list[str]:
    """Names of the submodules of a commit that git would not accept."""
    listed = modules(path, commit, "path").items()
    return [name for name, place in listed if not _is_safe(path, place, name)]


def _is_safe(path: Path, place: str, name: str) -> bool:
    """Whether name and path of a submodule stay in the git folder and in the checkout.

    Both come from the server: a part that is `..` or `.git` would lead to other repositories, and
    so would a symbolic link on the way.
    """
    parts = [re.split(r"[/\\]", text) for text in (name, place)]
    if any(part.lower() in ("", "..", ".git") for part in (*parts[0], *parts[1])):
        return False
    way = [Path(place), *Path(place).parents][:-1]
    return not any((path / folder).is_symlink() for folder in way)


def modules(path: Path, commit: str, key: str) -> dict[str, str]:
    """The values of a key in the .gitmodules of a commit, by name of the submodule."""
    config = git.config(path, "--blob", f"{commit}:.gitmodules")
    return dict(git.subsections(config, "submodule", key))


def waiting(path: Path, more: Mapping[str, str | None] = {}) -> dict[str, str | None]:
    """The submodules that a run left behind, or `more`, and that are still where it left them.

    By path, with the commit that each was left at: None for one that has to be cloned.
    """
    found: dict[str, str | None] = {}
    pending = {**journal.pending(path), **more}
    records = recorded(path) if pending else {}
    for name in pending.keys() & records.keys():
        place, old = path / name, pending[name]
        if old is None:
            waits = not _is_cloned(place)
        else:
            now = git.commit(place, "HEAD") if git.is_checkout(place) else None
            waits = now == old != records[name][1] or bool(waiting(place))
        found |= {name: old} if waits else {}
    return found


def _is_cloned(place: Path) -> bool:
    """Whether a submodule and those in it were cloned and checked out."""
    # git writes the index last: a clone that ended half-way has none.
    is_checked_out = git.is_checkout(place) and (git.git_dir(place) / "index").exists()
    return is_checked_out and all(_is_cloned(place / name) for name in recorded(place))


def removable(path: Path, old: str, new: str) -> list[str]:
    """Submodules that the new commit has not, and that hold nothing but the old commit's files."""
    gone = recorded(path, old).keys() - recorded(path, new).keys()
    return [name for name in sorted(gone) if _is_pristine(path / name)]


def _is_pristine(place: Path) -> bool:
    """Whether a submodule and those in it hold nothing but their recorded commits' files.

    A repository with a git folder of its own is more than that: its history is in no other place.
    """
    if not git.is_checkout(place):
        # A run may have been killed before it was cloned.
        return not os.path.lexists(place) or (place.is_dir() and not any(place.iterdir()))
    words = ("status", "--porcelain", "--untracked-files=all", "--ignored", "--no-renames")
    listed = git.ask(place, *words, "--ignore-submodules=none")
    entries = [entry.split(" ", 2) for entry in git.names(place, "ls-files", "--stage", "-z")]
    linked = [place / rest.partition("\t")[2] for mode, _, rest in entries if mode == "160000"]
    inner = [one for one in linked if git.is_checkout(one)]
    if listed or hidden(place) or any((one / ".git").is_dir() for one in (place, *inner)):
        return False
    return all(_is_pristine(one) for one in inner)
