"""A relay before a cache server, which misbehaves on request."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


class Relay:
    """Passes bytes on in both directions.

    Attributes:
      port: where it listens, on the loopback interface.
      wait: seconds before each answer.
      silent_after: it passes nothing on after so many bytes of requests; None for never.
      cut_after: it closes the connection, and all later ones, after so many bytes of requests.
    """

    def __init__(self, server: str):
        url = urlsplit(server)
        self._server = (url.hostname, url.port)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._lock = threading.Lock()
        self._requested = 0
        self._sockets: list[socket.socket] = [self._listener]
        self.port = self._listener.getsockname()[1]
        self.wait = 0.0
        self.silent_after: int | None = None
        self.cut_after: int | None = None
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Closes all connections."""
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                self._sockets += [client, server]
                asked = threading.Event()
                for function, pair in (
                    (self._requests, (client, server)),
                    (self._answers, (server, client)),
                ):
                    threading.Thread(target=function, args=(*pair, asked), daemon=True).start()

    def _requests(
        self, client: socket.socket, server: socket.socket, asked: threading.Event
    ) -> None:
        with suppress(OSError):
            while data := client.recv(4096):
                with self._lock:
                    self._requested += len(data)
                    requested = self._requested
                if self.cut_after is not None and requested > self.cut_after:
                    break
                if self.silent_after is not None and requested > self.silent_after:
                    continue
                asked.set()
                server.sendall(data)
        self._end(client, server)

    def _answers(
        self, server: socket.socket, client: socket.socket, asked: threading.Event
    ) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                # The first piece of an answer.
                if asked.is_set():
                    asked.clear()
                    time.sleep(self.wait)
                client.sendall(data)
        self._end(client, server)

    def _end(self, *connections: socket.socket) -> None:
        for each in connections:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def relay(server: str) -> Iterator[Relay]:
    """A relay that is closed at the end."""
    between = Relay(server)
    try:
        yield between
    finally:
        between.close()
