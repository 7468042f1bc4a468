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
from pathlib import Path

from bazel import fork_client


@functools.cache
def python() -> tuple[str, ...]:
    """The beginning of a command that runs Python."""
    try:
        fork_client.start()
    except OSError:  # In a sandbox, whose files cannot be written.
        os.environ["FORK_SERVER"] = str(Path(tempfile.mkdtemp(), "socket"))
        fork_client.start()
    return sys.executable, "-ISP", str(Path(fork_client.__file__).resolve())


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


def call(*command: str | Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Runs a command with additional variables. Its exit code is not checked."""
    variables = os.environ | environ
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


def run_file(file: Path, program: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Runs a program as a file, whose lines errors and reports name."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(program)
    return run(f"import runpy; runpy.run_path({str(file)!r})", **environ)


def lines(program: str, *arguments: str, **environ: str) -> list[str]:
    """What a program prints, which has to succeed."""
    done = run(program, *arguments, **environ)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
