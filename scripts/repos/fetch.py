"""Asks a server for the end of its default branch, and gets what is missing of it.

Asking is one call, `git ls-remote`; it changes nothing and tells whether there is anything to
fetch. Fetching moves one ref alone, `refs/remotes/<remote>/<branch>`.
"""

from pathlib import Path

from scripts.repos import git, network, shown
from scripts.repos.model import Settings, Tip


def ask(folder: Path, remote: str, branch: str | None, settings: Settings) -> Tip:
    """Asks a remote for the end of its default branch.

    Args:
      folder: the repository.
      remote: its name.
      branch: the default branch; None to have the server say which one that is.
      settings: for the network.
    """
    patterns = ["HEAD", *([f"refs/heads/{branch}"] if branch else [])]
    try:
        result = network.call(folder, settings, "ls-remote", "--symref", remote, *patterns)
    except network.Unreachable as error:
        return Tip(
            branch,
            None,
            f"{remote} cannot be reached: {error.problem}",
            (shown.git(folder, "ls-remote", remote),),
            unreachable=True,
        )
    refs, default = {}, None
    # Not by lines as Python knows them: names of branches hold such characters.
    for line in result.out.split("\n"):
        value, _, name = line.partition("\t")
        if not value.startswith("ref: "):
            refs[name] = value
        elif name == "HEAD":
            # A server that is a clone itself has a refs/remotes/origin/HEAD, too.
            default = value.removeprefix("ref: ").removeprefix("refs/heads/")
    if branch is None:
        if default is None or "HEAD" not in refs:
            return Tip(None, None, f"{remote} names no default branch", _set_branch())
        return Tip(default, refs["HEAD"])
    if f"refs/heads/{branch}" in refs:
        return Tip(branch, refs[f"refs/heads/{branch}"])
    return _gone(folder, remote, branch, default)


def _gone(folder: Path, remote: str, branch: str, default: str | None) -> Tip:
    """The default branch of the table is not there any more."""
    if default is None:
        return Tip(branch, None, f"{remote} has no branch {branch}", _set_branch())
    return Tip(
        branch,
        None,
        f"{remote} has no branch {branch}; its default branch is now {default}",
        (
            *_set_branch(default),
            *renamed(folder, remote, branch, default),
        ),
    )


def renamed(folder: Path, remote: str, old: str, new: str) -> tuple[str, ...]:
    """Commands that follow a default branch to its new name."""
    follow = shown.git(folder, "branch", "-u", f"{remote}/{new}", new)
    return (
        shown.git(folder, "branch", "-m", old, new),
        f"{shown.git(folder, 'fetch', remote)} && {follow}",
    )


def _set_branch(name: str = "...") -> tuple[str, ...]:
    return (f'in the table of repositories: branch = "{name}"',)


def get(
    folder: Path,
    remote: str,
    branch: str,
    settings: Settings,
    progress: network.Progress | None = None,
) -> None:
    """Fetches one branch into its remote-tracking ref.

    Raises:
      network.Unreachable: it could not be fetched.
    """
    refspec = f"+refs/heads/{branch}:refs/remotes/{remote}/{branch}"
    words = ["--no-tags", "--no-prune", "--no-write-fetch-head", "--no-recurse-submodules"]
    network.call(
        folder, settings, "fetch", "--progress", *words, remote, refspec, progress=progress
    )


def get_commit(folder: Path, remote: str, commit: str, settings: Settings) -> None:
    """Fetches one commit by its name, into no ref.

    Raises:
      network.Unreachable: it could not be fetched, or is not there.
    """
    words = ["--no-tags", "--no-prune", "--no-write-fetch-head", "--no-recurse-submodules"]
    network.call(folder, settings, "fetch", "--progress", *words, remote, commit)


def push(folder: Path, remote: str, commit: str, branch: str, settings: Settings) -> None:
    """Moves a branch of a remote forward; the server refuses what is not forward.

    Raises:
      network.Unreachable: it could not be pushed.
    """
    words = ["--porcelain", "--no-follow-tags", "--recurse-submodules=no"]
    network.call(folder, settings, "push", *words, remote, f"{commit}:refs/heads/{branch}")


def known(folder: Path, commit: str) -> bool:
    """Whether a commit is here."""
    return git.run(folder, "cat-file", "-e", f"{commit}^{{commit}}").code == 0
