"""scripts/remote/cache_tunnel.py behind a proxy."""

import base64
import socketserver
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bazel.pybuild.cache import remote_cache
from bazel.pybuild.options import Options
from test.cache.servers import certificate, tunnel


class _Proxy(socketserver.ThreadingTCPServer):
    """A proxy that is the cache server, too: behind each CONNECT it has no result.

    Attributes:
      requests: the lines of each request to the proxy.
      address: for HTTPS_PROXY.
    """

    daemon_threads = True

    def __init__(self, stem: Path):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[list[str]] = []
        self.address = f"http://user:secret@127.0.0.1:{self.server_address[1]}"
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.load_cert_chain(f"{stem}.pem", f"{stem}.key")


class _Handler(socketserver.StreamRequestHandler):
    server: _Proxy

    def handle(self) -> None:
        self.server.requests.append([line.decode() for line in iter(self._line, b"")])
        self.wfile.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        with self.server.context.wrap_socket(self.request, server_side=True) as connection:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    def _line(self) -> bytes:
        return self.rfile.readline().rstrip()


@pytest.fixture
def stem(tmp_path: Path) -> Path:
    """Of the certificate of cache.example."""
    return certificate(tmp_path / "known")


@pytest.fixture
def proxy(stem: Path) -> Iterator[_Proxy]:
    """A proxy that runs during the test."""
    with _Proxy(stem) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def _problem(authority: Path, **variables: str) -> str:
    """What is wrong with https://cache.example through a tunnel with these variables."""
    with tunnel("https://cache.example", authority, **variables) as url:
        return remote_cache.probe(Options(remote_cache=url)).problem


def test_a_tunnel_connects_through_the_proxy_of_https_proxy(proxy: _Proxy, stem: Path):
    problem = _problem(Path(f"{stem}.pem"), HTTPS_PROXY=proxy.address, NO_PROXY="")
    assert (problem, len(proxy.requests)) == ("", 1)
    lines = proxy.requests[0]
    user = base64.b64encode(b"user:secret").decode()
    assert lines[0].startswith("CONNECT cache.example:443 ")
    assert f"Proxy-Authorization: Basic {user}" in lines


def test_a_tunnel_connects_directly_to_a_server_of_no_proxy(proxy: _Proxy, stem: Path):
    problem = _problem(Path(f"{stem}.pem"), HTTPS_PROXY=proxy.address, NO_PROXY="cache.example")
    assert (problem != "", proxy.requests) == (True, [])
