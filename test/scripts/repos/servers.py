"""Servers of repositories on the loopback interface, well behaved or not."""

import base64
import http.server
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit


class Manners:
    """How a server behaves; may be changed while it runs.

    Attributes:
      status: instead of serving, answer with this.
      wrong_requests: how many requests are treated badly before it behaves; None for all.
      wait: seconds before each answer.
      password: of user `me`, which is asked for.
    """

    status: int | None = None
    wrong_requests: int | None = None
    wait: float = 0
    password: str | None = None


class Server(NamedTuple):
    """A running server.

    Attributes:
      url: of the folder that it serves.
      manners: how it behaves.
      requests: what was asked so far, such as "POST /a/.git/git-upload-pack".
    """

    url: str
    manners: Manners
    requests: list[str]


class _Handler(http.server.BaseHTTPRequestHandler):
    """Runs git http-backend as a CGI program."""

    protocol_version = "HTTP/1.0"
    folder: Path
    environ: Mapping[str, str]
    manners: Manners
    requests: list[str]

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self) -> None:
        manners = self.manners
        self.requests.append(f"{self.command} {self.path}")
        length = int(self.headers.get("Content-Length") or 0)
        body = self._chunks() if "chunked" in str(self.headers) else self.rfile.read(length)
        time.sleep(manners.wait)
        if not self._admitted():
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="repositories"')
            self.end_headers()
            return
        bad = manners.wrong_requests is None or manners.wrong_requests > 0
        if manners.wrong_requests:
            manners.wrong_requests -= 1
        if manners.status is not None and bad:
            self.send_error(manners.status)
            return
        self._serve(self._backend(body))

    def _chunks(self) -> bytes:
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        return data

    def _admitted(self) -> bool:
        if self.manners.password is None:
            return True
        wanted = base64.b64encode(f"me:{self.manners.password}".encode()).decode()
        return self.headers.get("Authorization") == f"Basic {wanted}"

    def _backend(self, body: bytes) -> bytes:
        parts = urlsplit(self.path)
        environ = {
            **self.environ,
            "GIT_PROJECT_ROOT": str(self.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": parts.path,
            "QUERY_STRING": parts.query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "CONTENT_LENGTH": str(len(body)),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_ADDR": "127.0.0.1",
        }
        words = ["git", "http-backend"]
        return subprocess.run(words, env=environ, input=body, capture_output=True).stdout

    def _serve(self, answer: bytes) -> None:
        head, _, body = answer.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = [line.split(": ", 1) for line in lines]
        status = next((value for name, value in headers if name == "Status"), "200")
        self.send_response(int(status.split()[0]))
        for name, value in headers:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(OSError):  # The client has had enough.
            self.wfile.write(body)


class _Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that goes away in the middle is what some tests are about."""


@contextmanager
def http_server(folder: Path, environ: Mapping[str, str]) -> Iterator[Server]:
    """Serves the repositories in a folder by git http-backend."""
    manners, requests = Manners(), []
    fields = {"folder": folder, "environ": environ, "manners": manners, "requests": requests}
    handler = type("Handler", (_Handler,), fields)
    with _Listener(("127.0.0.1", 0), handler) as listener:
        thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield Server(f"http://127.0.0.1:{listener.server_port}", manners, requests)
        finally:
            listener.shutdown()
            thread.join()


@contextmanager
def silent_port(*, answers: bool) -> Iterator[int]:
    """A port of this test, which never answers.

    Args:
      answers: whether a connection is accepted; otherwise it is refused.
    """
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        if answers:
            held.listen()
        yield held.getsockname()[1]
