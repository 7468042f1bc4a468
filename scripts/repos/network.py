"""Calls of git to a server: ended when they make no progress, repeated when that may help.

Transfers are called with --progress. A call that prints nothing is silent unless one of its
processes computes, reads or writes: a filter or a hook may take long.
"""

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from scripts.repos import git, progress
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
_FETCH = ("fetch", "--progress", "--no-tags", "--no-prune", "--no-write-fetch-head")
_FETCH += ("--no-recurse-submodules", "--refmap=")


_VERBS = {"ls-remote": "asking the server of", "fetch": "fetching"}


class Unreachable(git.Problem):
    """A server could not be reached, or `refused`: then another attempt does not help."""

    def __init__(self, problem: str, refused: bool):
        super().__init__(problem)
        self.refused = refused


def call(folder: Path, settings: Settings, failure: str, *arguments: str) -> str:
    """Output of a call of git, which is tried several times if necessary.

    Raises Unreachable when all attempts fail; `failure` is how its message begins.
    """

    def wait(process: "subprocess.Popen[bytes]", out: IO[bytes], err: IO[bytes]) -> None:
        with progress.call(folder.name, _VERBS.get(arguments[0], "cloning")) as tell:
            watch(process, out, err, tell)

    def watch(
        process: "subprocess.Popen[bytes]",
        out: IO[bytes],
        err: IO[bytes],
        tell: Callable[[str], None],
    ) -> None:
        last_progress = checked = time.monotonic()
        printed = work = 0
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
                return
            now, before = time.monotonic(), (printed, work)
            printed = sum(os.fstat(file.fileno()).st_size for file in (out, err))
            # Not every time: it reads all of /proc.
            if now - checked > settings.timeout / 10:
                checked, work = now, _work(process.pid)
            if (printed, work) != before:
                last_progress = now
                tell(_last_line(err))
            if git.STOP.is_set() or now - last_progress > settings.timeout:
                _end(process)
                raise TimeoutError

    problem = ""
    for attempt in range(settings.retries + 1):
        if attempt and git.STOP.wait(settings.backoff * 2 ** (attempt - 1)):
            break
        try:
            result = git.run(folder, *arguments, wait=wait)
        except TimeoutError:
            problem = f"no answer in {settings.timeout:g} s"
            continue
        if result.code == 0:
            return result.out
        if git.fault(folder, result.err) or _LOCAL.search(result.err):
            raise git.GitError(folder, arguments, result)
        problem = result.message or f"git ended with {result.code}"
        if _REFUSED.search(result.err):
            raise Unreachable(f"{failure}: {problem}", refused=True)
    tries = f" ({settings.retries + 1} attempts)" if settings.retries else ""
    problem = "interrupted" if git.STOP.is_set() else problem + tries
    raise Unreachable(f"{failure}: {problem}", refused=False)


def _last_line(err: IO[bytes]) -> str:
    """What git has printed last of its progress."""
    size = os.fstat(err.fileno()).st_size
    text = os.pread(err.fileno(), 200, max(0, size - 200)).decode(errors="replace")
    line = re.split(r"[\r\n]+", text.strip())[-1].removeprefix("remote: ")
    return git.redact("".join(filter(str.isprintable, line)))


def _work(session: int) -> int:
    """What the processes of a session have done: bytes read and written, and time computed.

    In tenths of seconds, because a process that only waits for a server computes a little, too.
    """
    done = 0
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name of the program, in brackets, may hold spaces.
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                ticks = sum(map(int, fields[11:15]))
                counted = (place / "io").read_text().split()
                done += ticks * 10 // os.sysconf("SC_CLK_TCK") + int(counted[1]) + int(counted[3])
    return done


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ends git and its helpers, by SIGTERM first, so that git removes its temporary files."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, number)
            process.wait(2)
            return


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
