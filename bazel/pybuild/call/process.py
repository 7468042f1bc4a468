"""Starts Bazel, or pip, and waits for it, also after Ctrl-C.

    with child(["bazel", "build", "//..."], root, environ) as process:
        ...    # runs while the program works
    process.returncode

Bazel writes to a terminal directly. In a log, lines about its progress are left out.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

INTERRUPTED = 8  # As Bazel ends after Ctrl-C.


@contextmanager
def child(
    command: Sequence[str],
    root: Path,
    environ: Mapping[str, str] | None = None,
    *,
    filtered: bool = False,
    group: bool = False,
) -> Iterator["subprocess.Popen[bytes]"]:
    """Starts a program, and waits for it at the end of the block.

    Without waiting, the next command would find Bazel's server still busy, or pip at work.

    Args:
      command: its command line.
      root: its working directory.
      environ: its environment; None for that of this process.
      filtered: whether lines about Bazel's progress are left out of its messages.
      group: whether SIGINT goes to all processes that it starts, in a process group of its own.

    Raises:
      KeyboardInterrupt: at the end of the block, if SIGINT arrived meanwhile; the program has
        received it and has ended, too.
    """
    # From here on, signals are blocked in this process and its threads, but not in the program.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    interrupted = False
    try:
        process = subprocess.Popen(
            command,
            cwd=root,
            env=environ,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE if filtered else None,
            process_group=0 if group else None,
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, mask),
        )
        reader = threading.Thread(target=_pass_on, args=(process.stderr,))
        reader.start()
        try:
            yield process
        finally:
            interrupted = _wait(process, group)
            reader.join()
            if process.stderr is not None:
                process.stderr.close()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if interrupted:
            raise KeyboardInterrupt


def as_shell(code: int) -> int:
    """The exit code of a program as a shell has it: 128 and the number of a signal."""
    return code if code >= 0 else 128 - code


# Phases of every build, and the end: Bazel repeats it, and our own last lines describe it.
_NOISE = (
    b"Loading:",
    b"Analyzing:",
    b"Computing main repo mapping",
    b"INFO: \n",
    b"INFO: Build completed",
    b"FAILED: Build did NOT complete",
    # Of Bazel 7.
    b"ERROR: Build did NOT complete",
    b"FAILED: \n",
    # Debian's system-wide bazelrc has it.
    b"WARNING: Option 'host_javabase' is deprecated",
    # Bazel 4 has no other name for it.
    b"WARNING: Option 'local_cpu_resources' is deprecated",
    b"[0 / ",
)


# Bazel repeats these for each action, with several lines about each; build.py says it in one line.
_CACHE_FAULTS = tuple(
    b"WARNING: %bRemote Cache:" % what for what in (b"Reading from ", b"Writing to ", b"")
)
_OTHER_MESSAGES = (b"WARNING:", b"ERROR:", b"INFO:", b"DEBUG:", b"FAILED:", b"SUBCOMMAND:", b"[")


def _pass_on(messages: IO[bytes] | None) -> None:
    about_cache = False
    for line in messages or ():
        if line.startswith(_OTHER_MESSAGES + _NOISE):
            about_cache = line.startswith(_CACHE_FAULTS)
        if line.strip() and not about_cache and not line.startswith(_NOISE):
            # Bazel must not stop because the output was closed.
            with suppress(OSError):
                sys.stderr.buffer.write(line)
                sys.stderr.buffer.flush()


_SIGNALS = {signal.SIGINT, signal.SIGCHLD}


def _wait(process: "subprocess.Popen[bytes]", group: bool) -> bool:
    """Waits for a program; returns whether this process was interrupted meanwhile."""
    interrupted = False
    while process.poll() is None:
        received = signal.sigwaitinfo(_SIGNALS)
        if received.si_signo == signal.SIGINT:
            interrupted = True
            # The terminal sends Ctrl-C to its whole group; `kill -INT` reaches this process alone.
            if group:
                os.killpg(process.pid, signal.SIGINT)
            elif received.si_code <= 0:
                process.send_signal(signal.SIGINT)
    return interrupted
