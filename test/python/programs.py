"""Runs short programs in processes of their own, without the 2 s of CPU that torch and jax take.

    done = run("import torch, torch_xla_lite; print(1)", TORCH_XLA_LITE_IR_DEBUG="1")

The processes are forks of one that has imported torch and jax (bazel/fork_server.py). The program
imports this package, which reads its variables then. A program that tests imports needs an
interpreter of its own.
"""

import functools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bazel import fork_client, fork_server


@functools.cache
def python() -> tuple[str, ...]:
    """The beginning of a command that runs Python."""
    if not fork_client.is_running():
        _start_server()
    return sys.executable, "-ISP", str(Path(fork_client.__file__).resolve())


def _start_server() -> None:
    """Starts a server for this process, with which it ends: its input is a pipe from here."""
    place = os.environ["FORK_SERVER"] = str(Path(tempfile.mkdtemp(), "socket"))
    subprocess.Popen([sys.executable, "-P", fork_server.__file__, place], stdin=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not fork_client.is_running():
        assert time.monotonic() < deadline, "the server does not start"
        time.sleep(0.05)


def run(
    program: str, *arguments: str, check: bool = False, **environ: str
) -> "subprocess.CompletedProcess[str]":
    """Runs a program with additional variables."""
    return subprocess.run(
        [*python(), "-c", program, *arguments],
        env=os.environ | environ,
        capture_output=True,
        text=True,
        check=check,
        timeout=300,
    )
