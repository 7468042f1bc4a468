"""Starts Bazel, or pip, and waits for it, also after a signal.

with child(["bazel", "build", "//..."], root, environ) as process:
    ...    # runs while the program works
process.returncode
"""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bazel.pybuild import interrupts

INTERRUPTED = 8  # Bazel's exit code after Ctrl-C.


@contextmanager
def child(
    command: Sequence[str], root: Path, environ: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """Starts a program, and waits for it at the end of the block.

    Without waiting, the next command would find Bazel's server still busy, or pip at work.

    Args:
      command: its command line.
      root: its working directory.
      environ: its environment; None for that of this process.

    Raises:
      KeyboardInterrupt: at the end of the block, if a signal arrived meanwhile that ends this
        process; the program has received SIGINT for it and has ended, too.
    """
    # From here on, signals are blocked in this process and its threads, but not in the program.
    signals = interrupts.awaited()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {*signals, signal.SIGCHLD})
    received = 0
    try:
        process = subprocess.Popen(
            command,
            cwd=root,
            env=environ,
            stdin=subprocess.DEVNULL,
            # A terminal sends Ctrl-C to this process alone, which sends it to all that the program
            # has started: bazelisk does not pass it on to Bazel.
            process_group=0,
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, mask),
        )
        try:
            yield process
        finally:
            received = _wait(process, signals)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if received:
            interrupts.note(received)
            raise KeyboardInterrupt


def _wait(process: "subprocess.Popen[bytes]", signals: set[signal.Signals]) -> int:
    """Waits for a program; returns the signal that this process received meanwhile, or 0."""
    received = 0
    while process.poll() is None:
        number = signal.sigwaitinfo({*signals, signal.SIGCHLD}).si_signo
        if number in signals:
            received = number
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
    return received
