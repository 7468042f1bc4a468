"""Configures the remote cache for Bazel, and checks by a request whether the server works.

    lines(options)      # ["build:remote-cache --remote_cache=https://cache.example", ...]
    answer = probe(options)
    answer.problem      # "it does not answer within 3 s"; empty if the cache can be used
    describe(options)   # (True, "https://cache.example answers in 3.1 ms; you may read, not write")

Bazel 4 waits for a server that does not answer in each action, and cannot be told to stop that. So
setup.py asks first, and again during the build (see Watch), and builds without the cache where the
server is silent. Of a server that speaks gRPC, only the greeting is awaited.
"""

import base64
import mmap
import re
import shlex
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from bazel.pybuild.options import Options

CONFIG = "--config=remote-cache"

# Why each option is there is said in docs/cache.md, "What the setting does".
_OPTIONS = (
    "--remote_local_fallback",
    "--incompatible_remote_results_ignore_disk",
    "--jobs=32",
)
# In docs/remote_execution.md.
_EXECUTION = (
    CONFIG,
    "--spawn_strategy=remote,local",
    "--remote_default_exec_properties=OSFamily=linux",
    "--remote_timeout=60",
    "--remote_retries=5",
)
# Bazel's exit codes for errors of remote caches, for its own crash, and for results that a remote
# cache has lost. Debian's Bazel 4 crashes when it uses TLS with gRPC.
_FAILURES = (32, 34, 37, 39)
_TIMEOUT_S = 3.0
_INTERVAL_S = 2.0
_SLOW_S = 0.25

# A key that no action has, and a blob that a writer may store: its name is its SHA-256.
_MISSING = "/ac/" + "0" * 64
_BLOB = b"torch_xla_lite\n"
_STORED = "/cas/1611c61272a69446652ff9eff8c9d12fe8760b302537c58f8b58da745b16ca73"
# As logs have it, and as JSON.
_CREDENTIALS = re.compile(
    rb"(?:Authorization(?:=|\\u003d)(?:Bearer|Basic) |REMOTE_CACHE_(?:READ|WRITE)_TOKEN=)"
    rb"([\w.~+/:-]+)"
)


class Answer(NamedTuple):
    """What a server said.

    Attributes:
      latency_s: of one request, with the connection.
      may_write: whether it takes results from this user.
      problem: why it cannot be used; empty if it can.
      remark: what else is wrong with it; empty for nothing.
      silent: whether the problem is that it did not answer in time.
    """

    latency_s: float = 0
    may_write: bool = False
    problem: str = ""
    remark: str = ""
    silent: bool = False


def lines(options: Options) -> list[str]:
    """The lines of an rc file that define --config=remote-cache; none without a remote cache.

    A server that speaks gRPC can be an engine, too: the lines define --config=remote-exec.
    """
    if options.remote_cache is None:
        return []
    flags = [f"--remote_cache={options.remote_cache}", *_OPTIONS]
    if _is_grpc(options.remote_cache):
        # The first upload of 60 blobs by Bazel 4 fails with its default of 100.
        flags.append("--remote_max_connections=4")
    flags.append(
        "--remote_upload_local_results"
        if options.remote_cache_write_token
        else "--noremote_upload_local_results"
    )
    if options.remote_cache_certificate:
        flags.append(f"--tls_certificate={options.remote_cache_certificate}")
    # Bazel 4 ignores --remote_cache_header with HTTP.
    flags += [f"--remote_header=Authorization={value}" for value in _authorization(options)]
    found = [f"build:remote-cache {shlex.quote(flag)}" for flag in flags]
    if _is_grpc(options.remote_cache):
        executor = f"--remote_executor={options.remote_cache}"
        found += [f"build:remote-exec {shlex.quote(flag)}" for flag in (*_EXECUTION, executor)]
    return found


def redact(files: Iterable[Path], root: Path) -> None:
    """Overwrites the credentials in Bazel's event files and in the logs of its servers.

    Bazel 4 writes the options of rc files to both, to a log also for commands that do not use
    them; so the folder with the logs is closed to others. The server still appends to its log, so
    each credential is replaced in its place.

    Args:
      files: the event files.
      root: of the tree, where Bazel's link leads to the folder with the logs.
    """
    link = root / "bazel-out"
    folder = link.resolve().parents[2] if link.is_symlink() else root
    # A server that was restarted has left its log.
    logs = [*folder.glob("java.log*")]
    for file in (*files, *logs):
        # An empty file cannot be mapped.
        with (
            suppress(FileNotFoundError, ValueError),
            file.open("r+b") as stream,
            mmap.mmap(stream.fileno(), 0) as content,
        ):
            for found in _CREDENTIALS.finditer(content):
                content[found.start(1) : found.end(1)] = b"*" * len(found[1])
    if logs:
        folder.chmod(0o700)


def probe(options: Options, timeout_s: float = _TIMEOUT_S) -> Answer:
    """Asks the server for a result that it does not have, and whether a writer may store one."""
    assert options.remote_cache is not None
    url = urlsplit(options.remote_cache)
    ask = _grpc if _is_grpc(options.remote_cache) else _http
    begin = time.monotonic()
    try:
        refused = ask(url, options, timeout_s, offers=False)
        latency_s = time.monotonic() - begin
        if refused:
            return Answer(latency_s, problem=refused)
        remark = f"it takes {latency_s:.2f} s to answer" if latency_s > _SLOW_S else ""
        if options.remote_cache_write_token is None:
            return Answer(latency_s, remark=remark)
        refused = ask(url, options, timeout_s, offers=True)
        if refused:
            remark = f"it does not store results: {refused}"
        return Answer(latency_s, not refused, remark=remark)
    except TimeoutError:
        return Answer(problem=f"it does not answer within {timeout_s:g} s", silent=True)
    except OSError as error:
        reason = getattr(error, "verify_message", "") or error.strerror or str(error)
        return Answer(problem=reason)


def flags(options: Options) -> tuple[list[str], str]:
    """Bazel's options for the cache, none if it cannot be used now, and what is wrong with it."""
    answer = probe(options)
    if answer.problem:
        return [], f"is not used: {answer.problem}"
    said = f"is used, but {answer.remark}" if answer.remark else ""
    if options.remote_cache_write_token and not answer.may_write:
        return [CONFIG, "--noremote_upload_local_results"], said
    return [CONFIG], said


def advice(options: Options) -> str:
    """What to do if Bazel fails to use TLS or a Unix socket; its messages do not say that."""
    scheme = (options.remote_cache or "").partition(":")[0]
    missing = {"https": "TLS", "grpcs": "TLS", "unix": "Unix sockets"}.get(scheme)
    if missing is None:
        return ""
    return f"; a Bazel without {missing}, such as Debian's, needs scripts/remote/cache_tunnel.py"


def describe(options: Options) -> tuple[bool, str]:
    """Whether there is no problem with the remote cache, and a sentence about it."""
    if options.remote_cache is None:
        return True, "none is set; TORCH_XLA_LITE_REMOTE_CACHE names one"
    answer = probe(options)
    if answer.problem:
        return False, f"{options.remote_cache} is not used: {answer.problem}"
    text = f"{options.remote_cache} answers in {answer.latency_s * 1000:.1f} ms"
    if _is_grpc(options.remote_cache):
        return True, text
    text += f"; you may {'read and write' if answer.may_write else 'read, not write'}"
    if options.remote_cache_write_token and not answer.may_write:
        return False, f"{text}: {answer.remark}"
    return True, text


class Watch:
    """Asks the server again and again while Bazel works."""

    def __init__(self, options: Options):
        self._problem = ""
        self._options = options._replace(remote_cache_write_token=None)
        self._over = threading.Event()

    def start(self, give_up: Callable[[], None]) -> None:
        """Starts asking; `give_up` is called once if the server does not answer in time."""
        threading.Thread(target=self._ask, args=(give_up,), daemon=True).start()

    def stop(self) -> None:
        """Ends the watch; a request under way is not waited for."""
        self._over.set()

    def problem(self, code: int) -> str:
        """Why Bazel, which ended with this exit code, cannot use the cache; empty if it can."""
        if not self._problem and code in _FAILURES:
            return f"Bazel failed with exit code {code}{advice(self._options)}"
        return self._problem

    def _ask(self, give_up: Callable[[], None]) -> None:
        while not self._over.wait(_INTERVAL_S):
            answer = probe(self._options)
            if answer.silent and not self._over.is_set():
                self._problem = answer.problem
                # Bazel may have ended meanwhile.
                with suppress(ProcessLookupError):
                    give_up()
                return


def _is_grpc(url: str) -> bool:
    return not url.startswith("http")


def _authorization(options: Options) -> list[str]:
    """The value of the Authorization header, if there is one."""
    token = options.remote_cache_write_token or options.remote_cache_read_token
    if not token:
        return []
    if ":" in token:
        return [f"Basic {base64.b64encode(token.encode()).decode()}"]
    return [f"Bearer {token}"]


def _connect(url: SplitResult, options: Options, timeout_s: float, protocol: str) -> socket.socket:
    if url.scheme == "unix":
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(timeout_s)
        connection.connect(url.path)
        return connection
    encrypted = url.scheme in ("https", "grpcs")
    address = (url.hostname, url.port or (443 if encrypted else 80))
    connection = socket.create_connection(address, timeout_s)
    if not encrypted:
        return connection
    import ssl

    context = ssl.create_default_context(cafile=options.remote_cache_certificate)
    context.set_alpn_protocols([protocol])
    return context.wrap_socket(connection, server_hostname=url.hostname)


def _http(url: SplitResult, options: Options, timeout_s: float, *, offers: bool) -> str:
    """Why the server refuses a request; empty if it does not."""
    method, path, body = ("PUT", _STORED, _BLOB) if offers else ("GET", _MISSING, b"")
    lines = [
        f"{method} {url.path}{path} HTTP/1.1",
        f"Host: {url.netloc}",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *(f"Authorization: {value}" for value in _authorization(options)),
    ]
    with _connect(url, options, timeout_s, "http/1.1") as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        with connection.makefile("rb") as stream:
            words = stream.readline(1000).decode(errors="replace").split(None, 2)
    if len(words) < 2 or not words[0].startswith("HTTP/"):
        return "it does not speak HTTP"
    expected = ("200", "201", "204") if offers else ("200", "204", "404")
    return "" if words[1] in expected else f"it answers {' '.join(words[1:]).strip()}"


def _grpc(url: SplitResult, options: Options, timeout_s: float, *, offers: bool) -> str:
    """Why the server cannot be used; empty if it can. Only Bazel itself shows it the token."""
    with _connect(url, options, timeout_s, "h2") as connection:
        # The beginning of HTTP/2, RFC 9113, and empty settings; the server answers with its own.
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
        return "" if connection.recv(9)[3:4] == b"\4" else "it does not speak gRPC"
