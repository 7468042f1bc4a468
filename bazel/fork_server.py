"""Starts Python programs as forks of a process that has imported torch, jax and pytest.

    python -P bazel/fork_server.py .venv/fork_server.socket     # until its standard input ends

A test that starts a Python of its own spends most of its time on these imports: 2 of the 2.5 CPU
seconds of a short one. scripts/test.sh runs this server beside Bazel. fork_client.py asks it for a
process with its arguments, environment, folder, files and namespaces (those of Bazel's sandbox), so
a program runs as if the interpreter had started it, but for what torch and jax did when they were
imported: no backend of jax and no thread exists then. A request with variables that would have
changed the imports is refused, and the client starts an interpreter.

The protocol: the client sends a line of JSON, with its three standard files and its namespaces
attached. The server answers `refused`, or, when the process has ended, its wait status. Meanwhile
the client may send numbers of signals, one byte each. A client that goes away takes its process
with it.
"""

import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import types
from pathlib import Path

_IMPORTED = ("torch", "jax", "pytest", "hypothesis")

# Beginnings of variables that the imported libraries read, or that the interpreter reads.
_READ_BY_IMPORTS = ("JAX_", "LD_", "MKL_", "OMP_", "PYTHON", "PYTORCH_", "TORCH_")
# Of these, the ones that are read when a program begins, or by this package.
_READ_LATER = (
    "PYTHON_",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPATH",
    "PYTHONPYCACHEPREFIX",
    "TORCH_XLA_LITE_",
)


def changes_imports(environ: dict[str, str]) -> bool:
    """Whether a new interpreter with these variables would differ from this one."""
    return any(
        name.startswith(_READ_BY_IMPORTS)
        and not name.startswith(_READ_LATER)
        and value != os.environ.get(name)
        for name, value in environ.items()
    )


def serve(place: Path) -> None:
    """Answers requests until standard input ends; each in a process of its own."""
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # as in Bazel's tests (python.bzl)
    for module in _IMPORTED:
        importlib.import_module(module)
    gc.freeze()  # A collection in a fork would copy all of this memory.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    place.unlink(missing_ok=True)
    listener.bind(str(place))
    listener.listen(64)
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _answer(connection)
            return
        connection.close()
    place.unlink(missing_ok=True)


def _answer(connection: socket.socket) -> None:
    """Forks once more and waits. Returns in the new process when its program has ended."""
    data, files, _, _ = socket.recv_fds(connection, 1 << 20, 16)
    while not data.endswith(b"\n"):
        if not (more := connection.recv(1 << 20)):
            os._exit(0)  # It asked only whether this server is running.
        data += more
    request = json.loads(data)
    if changes_imports(request["environ"]) or not _enter_namespaces(files[3:]):
        connection.sendall(b"refused\n")
        os._exit(0)
    child = os.fork()
    if child == 0:
        connection.close()
        _become(request, files)
        _run(request["arguments"])
        return
    for file in files:
        os.close(file)
    connection.sendall(f"{_wait(child, connection)}\n".encode())
    os._exit(0)


def _wait(child: int, connection: socket.socket) -> int:
    """The wait status of the process, after passing signals on to it."""
    ended = os.pidfd_open(child)
    while ended not in select.select([ended, connection], [], [])[0]:
        signals = connection.recv(64)
        if not signals:
            os.killpg(child, signal.SIGKILL)
            os._exit(1)
        for number in signals:
            os.kill(child, number)
    return os.waitpid(child, 0)[1]


def _enter_namespaces(files: list[int]) -> bool:
    """Joins the namespaces that differ from those of this process, if all of them can be joined.

    That of users comes last, because it takes rights away from root; other users get rights by it,
    and try the others again.
    """
    own = {os.stat(f"/proc/self/ns/{name}").st_ino for name in os.listdir("/proc/self/ns")}
    libc = ctypes.CDLL(None)
    left = [file for file in files if os.fstat(file).st_ino not in own]
    while left:
        refused = [file for file in left if libc.setns(file, 0) != 0]
        if len(refused) == len(left):
            return False
        left = refused
    return True


def _become(request: dict, files: list[int]) -> None:
    """Takes over what a new process would have had from its parent."""
    os.setsid()
    for stream, file in enumerate(files[:3]):
        os.dup2(file, stream)
    for file in files:
        os.close(file)
    os.chdir(request["folder"])
    imported_with = {n: value for n, value in os.environ.items() if n.startswith(("JAX_", "OMP_"))}
    os.environ.clear()
    os.environ.update(imported_with | request["environ"])
    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    sys.excepthook = _print_error
    signal.signal(signal.SIGINT, signal.default_int_handler)  # A shell may have ignored it.


def _run(arguments: list[str]) -> None:
    """Runs `-c PROGRAM`, `-m MODULE` or a file, with their arguments."""
    kind, *rest = arguments
    if kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    elif kind == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(kind, run_name="__main__")


def _print_error(kind: type, error: BaseException, trace: types.TracebackType | None) -> None:
    """Leaves the frames of this file out, as an interpreter has none below the program."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    sys.__excepthook__(kind, error.with_traceback(trace), trace)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
