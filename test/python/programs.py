"""Runs short programs in processes of their own, without the 2 s of CPU that torch and jax take.

    done = run("import torch, torch_xla_lite; print(1)", TORCH_XLA_LITE_IR_DEBUG="1")

A server imports torch and jax once, and forks for each program. The program imports this package,
which reads its variables then. Variables that torch and jax read when they are imported have no
effect, and a program that tests imports, forks or signals needs a process of another kind.
"""

import functools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

_SERVER = """
import gc, json, os, sys
import torch, jax
gc.freeze()
for line in sys.stdin:
    request = json.loads(line)
    child = os.fork()
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    for stream, name in enumerate((os.devnull, request["stdout"], request["stderr"])):
        os.dup2(os.open(name, os.O_WRONLY if stream else os.O_RDONLY), stream)
    os.environ.update(request["environ"])
    exec(compile(request["program"], "<string>", "exec"), {"__name__": "__main__"})
    sys.exit()
"""


@functools.cache
def _server() -> "subprocess.Popen[str]":
    """It ends when this process does, because its input does."""
    command = [sys.executable, "-c", _SERVER]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def run(program: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Runs a program with additional variables, whatever its exit status is."""
    server = _server()
    assert server.stdin and server.stdout
    with tempfile.TemporaryDirectory() as folder:
        outputs = {name: Path(folder, name) for name in ("stdout", "stderr")}
        for file in outputs.values():
            file.touch()
        request = {name: str(file) for name, file in outputs.items()}
        print(
            json.dumps({**request, "program": program, "environ": environ}),
            file=server.stdin,
            flush=True,
        )
        status = int(server.stdout.readline())
        texts = [file.read_text(encoding="utf-8") for file in outputs.values()]
    return subprocess.CompletedProcess(program, status, *texts)
