"""Starts Python programs as forks of a process that has imported torch, jax and pytest.

`bazel test` starts this server (start_fork_server.sh). It ends when nothing has run for five
minutes, or when packages or this file have changed. fork_client.py asks it for a process with the
client's arguments, environment, folder, files and namespaces (those of Bazel's sandbox), so a
program runs as if the interpreter had started it, but for what torch and jax did when they were
imported: no backend of jax and no thread exists then. At its end it takes apart what it has loaded
itself. A request with variables that would have changed the imports is refused, and the client
starts an interpreter.

The protocol: the client sends a line of JSON, with its three standard files and its namespaces
attached. The server answers `refused`, or, when the process has ended, its wait status. Meanwhile
the client may send numbers of signals, one byte each. A client that goes away takes its process
with it. To a client that sends nothing the server answers `running`, unless it is about to end.
"""

import _imp
import atexit
import ctypes
import gc
import importlib.machinery
import json
import multiprocessing.process
import os
import runpy
import select
import signal
import socket
import sys
import types
from pathlib import Path

_IMPORTED = ("torch", "jax", "pytest", "hypothesis", "_pytest.junitxml", "_pytest.unittest")
_TAKEN_APART = {"__main__", "builtins", "sys"}
_IDLE_SECONDS = 300
_UNUSED_SECONDS = 3600  # Until the first request: it is started before the build.
_THREADS = "1"

# Beginnings of variables that the imported libraries read, or that the interpreter reads.
_READ_BY_IMPORTS = ("JAX_", "LD_", "MKL_", "OMP_", "PYTHON", "PYTORCH_", "TORCH_")
# The variables that are read when a program begins, or by this package.
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


def serve(place: Path, listener: socket.socket) -> None:
    """Answers requests until there are none any more; each in a process of its own.

    Args:
      place: the socket in the file system. It is removed at the end.
      listener: that socket. It has been taking connections since before this process began.
    """
    os.environ["OMP_NUM_THREADS"] = _THREADS
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # as in Bazel's tests (python.bzl)
    state = _state()
    seconds: float = _UNUSED_SECONDS
    while True:
        ready = select.select([listener], [], [], seconds)[0]
        is_used = _has_children() or ready
        is_current = _state() == state
        if seconds and not (is_used and is_current):
            # No client finds the socket any more; those that have found it get an answer.
            place.unlink(missing_ok=True)
            seconds = 0
        elif not (seconds or ready):
            return
        if ready:
            connection, _ = listener.accept()
            is_request = bool(connection.recv(1, socket.MSG_PEEK))
            if is_request:
                seconds = seconds and _IDLE_SECONDS
                _import()
            elif seconds:
                connection.sendall(b"running\n")
            if is_request and os.fork() == 0:
                listener.close()
                _answer(connection, is_current)
                return
            connection.close()


def _has_children() -> bool:
    """Whether a program runs."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _import() -> None:
    """Imports what takes long, for the first request; another test run may need no Python.

    A fork copies the memory that it writes to. So a collection leaves all this alone, and its end
    takes none of these modules and static objects apart: 0.35 of an empty program's 0.5 s.
    """
    if _IMPORTED[-1] not in sys.modules:
        kept: dict[str, types.ModuleType] = {}
        atexit.register(lambda: [sys.modules.pop(name, None) for name in kept])  # It runs last.
        for module in _IMPORTED:
            importlib.import_module(module)
        _compile_package()
        gc.freeze()
        kept |= {name: sys.modules[name] for name in sys.modules.keys() - _TAKEN_APART}
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
        libc = ctypes.CDLL(None)
        libc.on_exit(libc._exit, None)  # after the destructors of what a program loads


def _compile_package() -> None:
    """Compiles the package, whose sources have no .pyc files in a sandbox: 0.2 s of its import."""
    sources = map(Path.read_bytes, Path(__file__).parents[1].glob("torch_xla_lite/**/*.py"))
    compiled = {source: compile(source, "", "exec", dont_inherit=True) for source in sources}
    loader = importlib.machinery.SourceFileLoader
    compile_now = loader.source_to_code

    def source_to_code(self: object, data: bytes, path: str, **options: int) -> types.CodeType:
        if data not in compiled:
            return compile_now(self, data, path, **options)
        _imp._fix_co_filename(compiled[data], path)
        return compiled[data]

    loader.source_to_code = source_to_code


def _state() -> list[int]:
    """When packages were installed or removed, and this file was changed."""
    places = [Path(folder) for folder in sys.path if folder.endswith("site-packages")]
    return [place.stat().st_mtime_ns for place in (*places, Path(__file__)) if place.exists()]


def _answer(connection: socket.socket, is_current: bool) -> None:
    """Forks once more and waits. Returns in the new process when its program has ended."""
    data, files, _, _ = socket.recv_fds(connection, 1 << 20, 16)
    while not data.endswith(b"\n"):
        data += connection.recv(1 << 20)
    request = json.loads(data)
    is_equal = is_current and not changes_imports(request["environ"])
    # With another root, as below chroot, files are others.
    is_inside = is_equal and _enter_namespaces(files[3:])
    if not is_inside or list(os.stat("/")[1:3]) != request["root"]:
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
    multiprocessing.process.ORIGINAL_DIR = request["folder"]  # where `spawn` finds the program
    os.environ.clear()
    os.environ.update({"OMP_NUM_THREADS": _THREADS} | request["environ"])
    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    sys.excepthook = _print_error
    # A shell may have ignored the first, and Bazel's server ignores the second.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


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
    serve(Path(sys.argv[1]), socket.socket(fileno=os.dup(0)))
