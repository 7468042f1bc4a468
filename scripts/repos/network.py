"""Calls of git to a server: git ends them when they are silent; repeated when that may help."""

import functools
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from scripts.repos import git
from scripts.repos.model import Settings

# The server refused, and would refuse again.
_REFUSED = re.compile(
    r"Authentication failed|could not read (Username|Password)|terminal prompts disabled"
    r"|Permission denied|Host key verification failed|[Rr]epository .*not found|access denied"
    r"|does not appear to be a git repository|returned error: (401|403|404|410)"
    r"|couldn't find remote ref|unadvertised object|not our ref"
    r"|transport '.*' not allowed|dubious ownership"
)
# A fault of this machine. What a server says begins with "remote:".
_LOCAL = re.compile(
    r"(?m)^(?!remote:).*(cannot lock ref|insufficient permission|Read-only file system"
    r"|[Uu]nable to (create|write|update local ref))"
)
# No other ref moves, whatever remote.<name>.fetch says; no tag arrives.
_FETCH = ("fetch", "--no-tags", "--no-prune", "--no-write-fetch-head")
_FETCH += ("--no-recurse-submodules", "--refmap=")


class Unreachable(git.Problem):
    """A server could not be reached, or `refused`: then another attempt does not help."""

    def __init__(self, problem: str, refused: bool):
        super().__init__(problem)
        self.refused = refused


def call(folder: Path, settings: Settings, failure: str, *arguments: str) -> str:
    """Output of a call of git, which is tried several times if necessary.

    Raises Unreachable when all attempts fail; `failure` is how its message begins.
    """
    if sys.stderr is not None and sys.stderr.isatty():
        print(f"{folder.name}: git {arguments[0]} ...", file=sys.stderr)
    environ, problem = _limits(folder, settings.timeout), ""
    for attempt in range(settings.retries + 1):
        if git.STOP.wait(settings.backoff * 2 ** (attempt - 1) if attempt else 0):
            break
        result = git.run(folder, *arguments, environ=environ, may_stop=True)
        if result.code == 0:
            return result.out
        error, problem = git.error(folder, arguments, result), result.message
        if isinstance(error, git.DiskFull) or _LOCAL.search(result.err):
            raise error
        if _REFUSED.search(result.err):
            raise Unreachable(f"{failure}: {problem}", refused=True)
    tries = f" ({settings.retries + 1} attempts)" if settings.retries else ""
    problem = "interrupted" if git.STOP.is_set() else problem + tries
    raise Unreachable(f"{failure}: {problem}", refused=False)


@functools.cache
def _limits(folder: Path, seconds: int) -> Mapping[str, str]:
    """Variables that make git and ssh end a call that is silent for so long."""
    limits = {"GIT_HTTP_LOW_SPEED_LIMIT": "1", "GIT_HTTP_LOW_SPEED_TIME": str(seconds)}
    names = ("GIT_SSH", "GIT_SSH_COMMAND")
    # A command of the user may be something else than OpenSSH.
    if not any(map(os.environ.get, names)) and git.run(folder, "config", "core.sshCommand").code:
        alive = f"-o ServerAliveInterval={seconds} -o ServerAliveCountMax=1"
        limits["GIT_SSH_COMMAND"] = f"ssh -o ConnectTimeout={seconds} {alive}"
    return limits


def list_branch(
    folder: Path, remote: str, branch: str | None, settings: Settings
) -> tuple[str | None, dict[str, str]]:
    """The server's default branch, if any, and the tips of it and of `branch`."""
    words = ("--symref", remote, "HEAD", *([f"refs/heads/{branch}"] if branch else []))
    listed = call(folder, settings, f"{remote} cannot be reached", "ls-remote", *words)
    refs, default = {}, None
    # Not by `splitlines`: names of branches may hold characters that it takes for line ends.
    for line in listed.split("\n"):
        value, _, name = line.partition("\t")
        if name == "HEAD" and value.startswith("ref: "):
            # A server that is a clone itself has a refs/remotes/origin/HEAD, too.
            default = value.removeprefix("ref: ").removeprefix("refs/heads/")
        elif name == "HEAD" and default is not None:
            refs[default] = value
        elif name.startswith("refs/heads/"):
            refs[name.removeprefix("refs/heads/")] = value
    return default, refs


def fetch(folder: Path, remote: str, wanted: str, settings: Settings, *options: str) -> None:
    """Fetches one commit by its name, or one refspec; no other ref moves."""
    failure = f"{wanted.partition(':')[0].lstrip('+')} cannot be fetched from {remote}"
    call(folder, settings, failure, *_FETCH, *options, remote, wanted)
