"""Runs Python as `python` does, but as a fork of fork_server.py where that is running.

    python -ISP bazel/fork_client.py [-c PROGRAM | -m MODULE | FILE] [ARGUMENT]...
    python -ISP bazel/fork_client.py --start     # the server, if there is none

The output, the exit status and the effect of signals are those of the program. Imports nothing that
a new interpreter has not imported, because it replaces one that costs 2 CPU seconds.

Bazel ends everything that a test has started. So it starts the server itself, before the tests
(start_fork_server.sh).
"""

import os
import signal
import socket
import sys

_NAMESPACES = ("mnt", "pid", "net", "ipc", "uts", "user")
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def place() -> str:
    """The server's socket. By default it is beside the interpreter: a variable that tells each test
    where it is would be in the keys of all tests."""
    default = os.path.join(os.path.dirname(sys.executable), "..", "fork_server.socket")
    return os.environ.get("FORK_SERVER", default)


def _connect() -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(place())
    return connection


def start() -> None:
    """Starts the server, unless there is one. One of several callers starts it.

    Raises:
      OSError: there is none, and none can be started.
    """
    folder = os.path.dirname(place())
    if "FORK_SERVER" not in os.environ and not os.path.exists(os.path.join(folder, "pyvenv.cfg")):
        raise FileNotFoundError("the interpreter belongs to the system")
    import fcntl

    with open(place() + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_running():
            _start()


def _is_running() -> bool:
    try:
        with _connect() as connection:
            connection.shutdown(socket.SHUT_WR)
            return connection.recv(8) != b""
    except OSError:
        return False


def _start() -> None:
    """Starts a server. Its input is the socket, which takes connections from now on."""
    import contextlib
    import subprocess

    with contextlib.suppress(FileNotFoundError):
        os.unlink(place())
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(place())
        listener.listen(64)
        server = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fork_server.py")
        subprocess.Popen(
            [sys.executable, "-P", server, os.path.abspath(place())],
            cwd="/",
            # It gets as few variables as a test of Bazel, because imports read them.
            env={"PATH": os.environ.get("PATH", os.defpath)},
            stdin=listener,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def main(arguments: list[str]) -> None:
    if arguments == ["--start"]:
        start()
        return
    try:
        answer = _ask(_connect(), arguments)
    except OSError:
        answer = "refused"
    if answer == "refused":
        os.execv(sys.executable, [sys.executable, "-P", *arguments])
    if not answer:
        # Not started again: a program that was half done would be done twice.
        sys.exit("error: bazel/fork_server.py ended while this program ran. Run it again.")
    _end_like(int(answer))


def _ask(connection: socket.socket, arguments: list[str]) -> str:
    import json

    request = {
        "arguments": arguments,
        "environ": dict(os.environ),
        "folder": os.getcwd(),
        "root": list(os.stat("/")[1:3]),
    }
    namespaces = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in _NAMESPACES]
    for number in _PASSED_ON:
        signal.signal(number, lambda number, _: connection.send(bytes([number])))
    data = json.dumps(request).encode() + b"\n"
    sent = socket.send_fds(connection, [data], [0, 1, 2, *namespaces])
    connection.sendall(data[sent:])
    return connection.makefile().readline().strip()


def _end_like(status: int) -> None:
    """Ends as the program did: by the same signal, or with the same exit status."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        if -code in _PASSED_ON:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
