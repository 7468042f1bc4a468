"""Starts the processes of a program on this machine.

    python -m torch_xla_lite.launch -n 4 train.py --epochs 3
    python -m torch_xla_lite.launch -n 4 -m package.train

The program calls torch_xla_lite.distributed.initialize(). Each line that a process writes has its
number before it. When one fails, the others are ended, and the last line says which and why. Before
it stands where, if SIGTERM or SIGKILL ended the process: its frames, or those of another one.

Exit status: that of the first process that failed, 128 + n if signal n ended it; otherwise 0.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import BinaryIO

from .mesh.base.distributed import CHECK, PEER_FAILED

# How long processes that are asked to end may take, in seconds.
_GRACE = 5.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(
        "python -m torch_xla_lite.launch",
        description="Starts the processes of a program on this machine.",
    )
    parser.add_argument("-n", type=int, required=True, metavar="N", help="how many processes")
    parser.add_argument("-m", action="store_true", help="PROGRAM is a module, as of python -m")
    parser.add_argument("program", help="a file of Python")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="those of the program")
    options = parser.parse_args(arguments)
    if options.n < 1:
        parser.error(f"-n {options.n}: at least one process is needed")
    command = [sys.executable, *(["-m"] if options.m else []), options.program, *options.arguments]
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        # nohup switches SIGHUP off.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        return run(command, options.n)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def run(command: Sequence[str], count: int) -> int:
    """Runs a command `count` times at once, as the processes of one program; returns the exit
    status."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for environ in _environments(count):
            processes.append(
                subprocess.Popen(
                    command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
                )
            )
        return _wait(processes)
    finally:
        _end(processes)


def _environments(count: int) -> list[dict[str, str]]:
    """The variables of each process."""
    port = _free_port()
    shared = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "_TORCH_XLA_LITE_LAUNCHED": "1",
        "PYTHONUNBUFFERED": "1",
    }
    return [
        {**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}
        for rank in range(count)
    ]


def _free_port() -> int:
    """For torch.distributed, with a free one after it, which `initialize` takes."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            with contextlib.suppress(OSError, OverflowError):
                second.bind(("127.0.0.1", port + 1))
                return port


def _wait(processes: list[subprocess.Popen[bytes]]) -> int:
    """Waits until all have ended, or one has failed."""
    silent: set[int] = set()  # Where these stand when they are ended is not the cause.
    writers = [
        threading.Thread(target=_forward, args=(rank, source, target, silent), daemon=True)
        for rank, process in enumerate(processes)
        for source, target in [
            (process.stdout, sys.stdout.buffer),
            (process.stderr, sys.stderr.buffer),
        ]
    ]
    for writer in writers:
        writer.start()
    failed = None
    while failed is None:
        codes = [process.poll() for process in processes]
        failed = next((rank for rank, code in enumerate(codes) if code not in (None, 0)), None)
        if all(code == 0 for code in codes):
            break
        time.sleep(0.05)
    if failed is None:
        for writer in writers:
            writer.join()
        return 0
    # One that ended because of another is not the cause.
    deadline = time.monotonic() + _GRACE
    while processes[failed].returncode == PEER_FAILED and time.monotonic() < deadline:
        codes = [process.poll() for process in processes]
        causes = (rank for rank, code in enumerate(codes) if code not in (None, 0, PEER_FAILED))
        failed = next(causes, failed)
        time.sleep(0.05)
    writers[2 * failed + 1].join(_GRACE)
    code = processes[failed].returncode
    # SIGKILL leaves no time to say where. Another one does when it is ended: it stands there, too.
    running = {rank for rank, process in enumerate(processes) if process.poll() is None}
    witness = min(running, default=failed) if code == -signal.SIGKILL else failed
    silent |= running - {witness}
    _end(processes)
    deadline = time.monotonic() + _GRACE
    for writer in writers:
        writer.join(max(0.0, deadline - time.monotonic()))
    if code < 0:
        text = f"was ended by {signal.Signals(-code).name}"
    else:
        text = f"failed with exit status {code}"
    if code == -signal.SIGABRT:
        text += f". If the processes have run different programs, this names them:  {CHECK}=1"
    print(f"process {failed} of {len(processes)} {text}", file=sys.stderr, flush=True)
    return code if code > 0 else 128 - code


_lock = threading.Lock()
# What `faulthandler` writes, and distributed._saying_where.
_STACK = re.compile(rb'Stack \(most recent call first\)|  File ".*", line \d+ in ')


def _forward(rank: int, source: BinaryIO, target: BinaryIO, silent: set[int]) -> None:
    for line in source:
        if rank in silent and _STACK.match(line):
            continue
        with _lock:
            target.write(b"[%d] %s" % (rank, line if line.endswith(b"\n") else line + b"\n"))
            target.flush()


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Asks those that still run to end, and makes them end."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
    deadline = time.monotonic() + _GRACE
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
