"""What state a repository is in. Nothing is changed, not even the index is refreshed."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from scripts.repos import git, journal
from scripts.repos.model import Ended, LocalWork, Repo

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


def folder(repo: Repo) -> Repo:
    """Raises Ended where git has no checkout, and for a submodule, whose commit another decides."""
    words = ("rev-parse", "--show-toplevel", "--show-superproject-working-tree")
    result = git.run(repo.path, *words)
    outer = result.out.removeprefix(f"{repo.path}\n").removesuffix("\n")
    if result.code != 0:
        reason = f"git does not accept it as a checkout: {result.message}"
    elif not result.out.startswith(f"{repo.path}\n"):
        reason = f"its files are in {outer}"
    elif outer:
        reason = f"a submodule of {outer}, which decides its commit"
    else:
        return repo
    raise Ended(repo.skipped(reason, repo.command("status")))


def work(repo: Repo) -> Repo:
    """Adds HEAD, the upstream's default branch and local work; raises Ended without a commit."""
    path, remote = repo.path, f"refs/remotes/{repo.official}/"
    # One call of git. The names of symbolic refs have no line breaks.
    words = ("--format=%(symref) %(objectname)", f"{remote}HEAD", journal.refs_of(path, "left"))
    listed = [line.split(" ") for line in git.ask(path, "for-each-ref", *words).split("\n") if line]
    before = [commit for symref, commit in listed if not symref]
    default = next((symref.removeprefix(remote) for symref, _ in listed if symref), None)
    head, branch, local = checkout(path, before)
    repo = repo._replace(head=head, branch=branch, local=local, before=before)
    if head is None:
        raise Ended(repo.skipped("no commit on the current branch", repo.command("status")))
    pending = bool(before and behind(path, before))
    return repo._replace(pending=pending, default_branch=repo.entry.branch or default)


def checkout(path: Path, before: Sequence[str] = ()) -> tuple[str | None, str | None, LocalWork]:
    """HEAD, branch and local work of a repository or submodule, as git's status knows them.

    Submodules that are only where one of the commits `before` has them are no local work.
    """
    # git would count commit by commit how far HEAD is from its upstream.
    words = ("status", "--porcelain=v2", "--branch", "--no-ahead-behind", "-z", "--no-renames")
    which = ("--untracked-files=normal", "--ignored=no", "--ignore-submodules=none")
    listed = git.names(path, *words, *which)
    about = dict(entry[2:].split(" ", 1) for entry in listed if entry[0] == "#")
    head = None if about["branch.oid"] == "(initial)" else about["branch.oid"]
    branch = None if about["branch.head"] == "(detached)" else about["branch.head"]
    changed, submodules = [], {}
    for entry in (entry for entry in listed if entry[0] == "1"):
        _, letters, flags, _, mode, *_, name = entry.split(" ", 8)
        # A repository in the place of a file is a change of the file.
        is_inside = flags[0] == "S" and flags != "S..." and mode == "160000"
        if is_inside:
            olds = [git.run(path, "rev-parse", f"{old}:{name}").out.strip() for old in before]
            submodules[name] = _submodule_problem(path / name, flags, olds)
        if letters[0] != "." or not is_inside:
            changed.append(name)
    local = LocalWork(
        changed=changed,
        conflicted=[entry.split(" ", 10)[10] for entry in listed if entry[0] == "u"],
        untracked=[entry[2:] for entry in listed if entry[0] == "?"],
        submodules={name: problem for name, problem in submodules.items() if problem},
        in_progress=in_progress(path),
    )
    return head, branch, local


def hidden(path: Path) -> list[str]:
    """Files that a flag of the index hides from git, except those that are not there.

    Without a sparse checkout a file that is not there was removed by the user, and counts.
    """
    listed = [entry.partition(" ") for entry in git.names(path, "ls-files", "-v", "-z")]
    flagged = [name for flag, _, name in listed if flag.islower() or flag == "S"]
    if git.setting(path, "core.sparseCheckout", "--type=bool") != "true":
        return flagged
    return [name for name in flagged if os.path.lexists(path / name)]


def in_progress(path: Path) -> list[str]:
    """Operations in progress."""
    git_dir = git.git_dir(path)
    return [word for name, word in _IN_PROGRESS.items() if (git_dir / name).exists()]


def _submodule_problem(place: Path, flags: str, before: Sequence[str]) -> str:
    """The problem of a submodule, from the four letters of git's status."""
    words = []
    if flags[2] == "M" and checkout(place, before)[2]._replace(untracked=()).describe():
        words.append("has changes")
    if flags[1] == "C" and git.commit(place, "HEAD") not in before:
        words.append("is at another commit than recorded")
    return " and ".join(words)


def recorded(path: Path, commit: str = "HEAD") -> dict[str, tuple[str, str]]:
    """Submodules of a commit: path to name in .gitmodules and recorded commit.

    Those that git would not accept are left out, wherever submodules are read.
    """
    names = {p: name for name, p in _declared(path, commit) if _is_safe(path, p, name)}
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
    return [name for name, p in _declared(path, commit) if not _is_safe(path, p, name)]


def _declared(path: Path, commit: str) -> list[tuple[str, str]]:
    """Names and paths of the submodules in the .gitmodules of a commit."""
    words = (f"--blob={commit}:.gitmodules", "-z", "--get-regexp", r"^submodule\..*\.path$")
    listed = git.run(path, "config", *words).out.split("\0")[:-1]
    pairs = [entry.partition("\n") for entry in listed]
    return [(key[len("submodule.") : -len(".path")], place) for key, _, place in pairs]


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


def behind(path: Path, before: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Submodules that have to follow a HEAD that was at one of these commits, and did not.

    By path, with the commits that these recorded: none for one that has to be cloned. All are new
    where no commit is given. What a person moved elsewhere is not among them.
    """
    olds = [recorded(path, old) for old in before if git.commit(path, old)]
    if before and not olds:
        return {}
    # Where the user left out some, new ones are not wanted either.
    left_out = any(not git.is_checkout(path / place) for old in olds for place in old)
    found: dict[str, tuple[str, ...]] = {}
    for place, (_, commit) in recorded(path).items():
        is_new = not olds or any(place not in old for old in olds)
        known = tuple({old[place][1] for old in olds if place in old} - {commit})
        if is_new and not left_out and not is_cloned(path / place):
            found[place] = ()
        elif (is_new or known) and git.is_checkout(path / place):
            now = git.commit(path / place, "HEAD")
            if now in known or (now == commit and behind(path / place, known)):
                found[place] = known
    return found


def is_cloned(place: Path) -> bool:
    """Whether a submodule was checked out."""
    # git writes the index last: a clone that ended half-way has none.
    return git.is_checkout(place) and (git.git_dir(place) / "index").exists()


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
