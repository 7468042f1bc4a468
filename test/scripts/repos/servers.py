"""Servers of repositories on the loopback interface, well behaved or not."""

import base64
import functools
import http.server
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Server:
    """How a server behaves, which may be changed while it runs, and what it was asked for."""

    url: str = ""  # Of the folder that it serves.
    status: int | None = None  # Instead of serving, it answers with this.
    wait: float = 0  # Seconds before each answer.
    password: str | None = None  # Of user `me`, which is asked for.
    requests: list[str] = field(default_factory=list)


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the files of repositories: `git update-server-info` has listed their refs."""

    def __init__(self, server: Server, *arguments: object, **keywords: object):
        self.behaviour = server
        super().__init__(*arguments, **keywords)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        server = self.behaviour
        server.requests.append(self.path)
        time.sleep(server.wait)
        wanted = base64.b64encode(f"me:{server.password}".encode()).decode()
        if server.password and self.headers.get("Authorization") != f"Basic {wanted}":
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="repositories"')
            self.end_headers()
        elif server.status is not None:
            self.send_error(server.status)
        else:
            super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def http_server(folder: Path) -> Iterator[Server]:
    """Serves the repositories in a folder."""
    server = Server()
    handler = functools.partial(_Handler, server, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as listener:
        listener.block_on_close = False
        server.url = f"http://127.0.0.1:{listener.server_port}"
        thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown()
            thread.join()


@contextmanager
def silent_port(*, answers: bool) -> Iterator[int]:
    """A port of this test that never answers: it accepts a connection, or refuses it."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        if answers:
            held.listen()
        yield held.getsockname()[1]
