"""Calls of git that talk to a server: ended when they fall silent, tried again when that may help.

network.call(folder, settings, "ls-remote", "origin", "HEAD")   # a git.Result; raises Unreachable
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

# However much a call still says, it is ended after so many times the time that it may be silent.
_LONGEST = 60

# The server has answered, and will answer the same the next time.
_REFUSED = (
    r"Authentication failed|could not read (Username|Password)|terminal prompts disabled"
    r"|Permission denied|Host key verification failed|[Rr]epository .*not found|access denied"
    r"|does not appear to be a git repository|returned error: (401|403|404|410)"
    r"|couldn't find remote ref|unadvertised object|not our ref|\[rejected\]|\[remote rejected\]"
    r"|transport '.*' not allowed|dubious ownership"
)

_PERCENT = rb"(\w[\w ]+):\s+(\d+)%"

Progress = Callable[[str, int], None]


class Unreachable(Exception):
    """A server could not be reached, or refused.

    Args:
      problem: what happened, without credentials.
      refused: whether the server answered, so that trying again does not help.
    """

    def __init__(self, problem: str, refused: bool):
        super().__init__(problem)
        self.problem = problem
        self.refused = refused


def call(
    folder: Path, settings: Settings, *arguments: str, progress: Progress | None = None
) -> git.Result:
    """Calls git, several times if need be.

    Args:
      folder: to call it in.
      settings: timeout, retries, backoff.
      arguments: of git.
      progress: is told what git does and how many per cent of it are done.

    Raises:
      Unreachable: every attempt failed, or the first was refused.
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
        # A push tells in its output which refs were refused.
        if re.search(_REFUSED, result.err + result.out):
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
        git.command(*arguments),
        cwd=folder,
        env=git.environment(folder, changing=True),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Its helpers are ended with it.
        start_new_session=True,
    )
    texts = {process.stdout: bytearray(), process.stderr: bytearray()}
    began = heard = time.monotonic()
    with selectors.DefaultSelector() as selector:
        for pipe in texts:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            # Asked before the pipes are looked at: what a process that has ended wrote is in them.
            ended = process.poll() is not None
            ready = selector.select(0 if ended else 0.2)
            for key, _ in ready:
                data = os.read(key.fd, 65536)
                if not data:
                    selector.unregister(key.fileobj)
                    continue
                heard = time.monotonic()
                texts[key.fileobj] += data
                _tell(data, progress)
            # A connection that ssh keeps for later keeps the pipes open, too.
            if ended and not ready:
                break
            now = time.monotonic()
            if git.STOP.is_set() or now - heard > timeout or now - began > timeout * _LONGEST:
                _end(process)
                return None
    code = process.wait()
    out, err = (os.fsdecode(bytes(text)) for text in texts.values())
    process.stdout.close()
    process.stderr.close()
    return git.Result(code, out, err)


def _tell(data: bytes, progress: Progress | None) -> None:
    found = re.findall(_PERCENT, data) if progress else None
    if found:
        progress(found[-1][0].decode(), int(found[-1][1]))


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
    process.stdout.close()
    process.stderr.close()
