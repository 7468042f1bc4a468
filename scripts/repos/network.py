"""Calls of git that talk to a server: ended when they fall silent, tried again when that may help.

network.call(folder, settings, "ls-remote", "origin", "HEAD")   # a git.Result; raises Unreachable

Transfers are called with --progress, so that a call that prints nothing does nothing.
"""

import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from scripts.repos import git, urls
from scripts.repos.model import Settings

# However much a call still prints, it is ended after so many times the time that it may be silent.
_LONGEST = 60

# The server has answered, and will answer the same the next time.
_REFUSED = re.compile(
    r"Authentication failed|could not read (Username|Password)|terminal prompts disabled"
    r"|Permission denied|Host key verification failed|[Rr]epository .*not found|access denied"
    r"|does not appear to be a git repository|returned error: (401|403|404|410)"
    r"|couldn't find remote ref|unadvertised object|not our ref|\[rejected\]|\[remote rejected\]"
    r"|transport '.*' not allowed|dubious ownership"
)
_PERCENT = re.compile(rb"(\w[\w ]+):\s+(\d+)%")
# No other ref moves, no tag arrives.
_FETCH = ("fetch", "--progress", "--no-tags", "--no-prune", "--no-write-fetch-head")
_FETCH += ("--no-recurse-submodules",)

Progress = Callable[[str, int], None]


class Unreachable(Exception):
    """A server could not be reached; or it `refused`, so that trying again does not help."""

    def __init__(self, problem: str, refused: bool):
        super().__init__(problem)
        self.problem = problem
        self.refused = refused


def call(
    folder: Path, settings: Settings, *arguments: str, progress: Progress | None = None
) -> git.Result:
    """Calls git, several times if necessary; raises Unreachable when all attempts fail.

    `progress` is told what git does, and how many per cent of it are done.
    """
    problem = ""
    for attempt in range(settings.retries + 1):
        if attempt and git.STOP.wait(settings.backoff * 2 ** (attempt - 1)):
            break
        result = _once(folder, settings.timeout, arguments, progress)
        if result is None:
            problem = f"no answer in {settings.timeout:g} s"
            continue
        if result.code == 0:
            return result
        problem = result.words or f"git ended with {result.code}"
        # A push prints to its output which refs were refused.
        if _REFUSED.search(result.err + result.out):
            raise Unreachable(problem, refused=True)
    if git.STOP.is_set():
        problem = "interrupted"
    tries = f" ({settings.retries + 1} attempts)" if settings.retries else ""
    raise Unreachable(urls.redact(problem, git.SECRETS) + tries, refused=False)


def _once(
    folder: Path, timeout: float, arguments: tuple[str, ...], progress: Progress | None
) -> git.Result | None:
    """One attempt; None when it was ended for its silence."""
    process = subprocess.Popen(
        [*git.COMMAND, *arguments],
        cwd=folder,
        env=git.environment(folder, changing=True),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Its helpers are ended with it.
        start_new_session=True,
    )
    assert process.stdout is not None and process.stderr is not None
    texts = {process.stdout: bytearray(), process.stderr: bytearray()}
    began = heard = time.monotonic()
    with process.stdout, process.stderr, selectors.DefaultSelector() as selector:
        for pipe in texts:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            # Asked before the pipes are read: what an ended process wrote is in them.
            ended = process.poll() is not None
            ready = selector.select(0 if ended else 0.2)
            for key, _ in ready:
                data = os.read(key.fd, 65536)
                if not data:
                    selector.unregister(key.fileobj)
                    continue
                heard = time.monotonic()
                texts[key.fileobj] += data  # type: ignore[index]
                found = _PERCENT.findall(data) if progress else None
                if progress and found:
                    progress(found[-1][0].decode(), int(found[-1][1]))
            # A connection that ssh keeps for later keeps the pipes open, too.
            if ended and not ready:
                break
            now = time.monotonic()
            if git.STOP.is_set() or now - heard > timeout or now - began > timeout * _LONGEST:
                _end(process)
                return None
        code = process.wait()
    return git.Result(code, *(os.fsdecode(bytes(text)) for text in texts.values()))


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ends git and its helpers: asked first, so that it removes its temporary files."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(2)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue


def list_branch(
    folder: Path, remote: str, branch: str | None, settings: Settings
) -> tuple[str | None, dict[str, str]]:
    """The default branch that a server names, if any; and the ends of that and a given branch."""
    patterns = ["HEAD", *([f"refs/heads/{branch}"] if branch else [])]
    result = call(folder, settings, "ls-remote", "--symref", remote, *patterns)
    refs, default = {}, None
    # Not by `splitlines`: names of branches may hold characters that it takes for line ends.
    for line in result.out.split("\n"):
        value, _, name = line.partition("\t")
        if name == "HEAD" and value.startswith("ref: "):
            # A server that is a clone itself has a refs/remotes/origin/HEAD, too.
            default = value.removeprefix("ref: ").removeprefix("refs/heads/")
        elif name == "HEAD" and default is not None:
            refs[default] = value
        elif name.startswith("refs/heads/"):
            refs[name.removeprefix("refs/heads/")] = value
    return default, refs


def fetch_branch(
    folder: Path, remote: str, branch: str, settings: Settings, progress: Progress | None = None
) -> None:
    """Fetches one branch into its remote-tracking ref."""
    refspec = f"+refs/heads/{branch}:refs/remotes/{remote}/{branch}"
    call(folder, settings, *_FETCH, remote, refspec, progress=progress)


def fetch_commit(folder: Path, remote: str, commit: str, settings: Settings, *options: str) -> None:
    """Fetches one commit by its name, or a refspec, into no remote-tracking ref."""
    call(folder, settings, *_FETCH, *options, remote, commit)


def push(folder: Path, remote: str, commit: str, branch: str, settings: Settings) -> None:
    """Moves a branch of a remote forward; the server refuses what is not forward."""
    words = ("--progress", "--porcelain", "--no-follow-tags", "--recurse-submodules=no")
    call(folder, settings, "push", *words, remote, f"{commit}:refs/heads/{branch}")
