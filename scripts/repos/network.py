"""Calls of git to a server, which git ends when they are silent."""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from scripts.repos import git

# A fault of this machine. What a server says begins with "remote:".
_LOCAL = re.compile(
    r"(?m)^(?!remote:).*(cannot lock ref|insufficient permission|Read-only file system"
    r"|No space left|quota exceeded|[Uu]nable to (create|write|update local ref))"
)
# No other ref moves, whatever remote.<name>.fetch says; no tag arrives.
_FETCH = (
    *("fetch", "--no-tags", "--no-prune", "--no-write-fetch-head"),
    *("--no-recurse-submodules", "--refmap="),
)


class Unreachable(git.Problem):
    """A server could not be reached, or refused."""


def call(folder: Path, failure: str, *arguments: str) -> None:
    """Calls git; raises Unreachable, whose message begins with `failure`."""
    if sys.stderr is not None and sys.stderr.isatty():
        print(f"{folder.name}: git {arguments[0]} ...", file=sys.stderr)
    result = git.run(folder, *arguments, environ=_limits(folder), may_stop=True)
    if result.code == 0:
        return
    if _LOCAL.search(result.err):
        raise git.GitError(folder, arguments, result)
    problem = "interrupted" if git.STOP.is_set() else result.message
    raise Unreachable(f"{failure}: {problem}")


def _limits(folder: Path) -> Mapping[str, str]:
    """Variables that make git and ssh end a call that is silent for a minute; the user's first."""
    limits = {"GIT_HTTP_LOW_SPEED_LIMIT": "1", "GIT_HTTP_LOW_SPEED_TIME": "60"}
    names = ("GIT_SSH", "GIT_SSH_COMMAND")
    # A command of the user may be something else than OpenSSH.
    if not any(map(os.environ.get, names)) and not git.setting(folder, "core.sshCommand"):
        alive = "-o ServerAliveInterval=60 -o ServerAliveCountMax=1"
        limits["GIT_SSH_COMMAND"] = f"ssh -o ConnectTimeout=60 {alive}"
    return {name: os.environ.get(name, value) for name, value in limits.items()}


def fetch(folder: Path, remote: str, wanted: str, *options: str) -> None:
    """Fetches one commit by its name, or one refspec; no other ref moves."""
    failure = f"{wanted.partition(':')[0].lstrip('+')} cannot be fetched from {remote}"
    call(folder, failure, *_FETCH, *options, remote, wanted)
