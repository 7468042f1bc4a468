#!/usr/bin/env python3
"""Makes a cache server reachable by plain TCP, for a Bazel without TLS and Unix sockets, such as
Debian's.

    python scripts/remote/cache_tunnel.py https://cache.example &        # listens on http://127.0.0.1:9092
    export TORCH_XLA_LITE_REMOTE_CACHE=http://127.0.0.1:9092
    python setup.py develop

Everything that arrives on the loopback interface is passed on to the server through TLS, whose
certificate is checked; grpcs:// becomes grpc://. What is for unix:/SOCKET is passed on to the
socket; meanwhile every user of this machine reaches it. Tokens are passed on as they are. It runs
until it is interrupted or terminated.

It connects through the proxy that HTTPS_PROXY names (http://[USER:PASSWORD@]HOST:PORT), unless
NO_PROXY has the server. Bazel and setup.py read neither.

The first line of standard output is the URL for TORCH_XLA_LITE_REMOTE_CACHE.
"""

import argparse
import asyncio
import base64
import http.client
import signal
import socket
import ssl
import sys
from contextlib import suppress
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

_PLAIN = {"https": "http", "grpcs": "grpc", "unix": "grpc"}
# What the two sides agree on when the connection is made.
_PROTOCOLS = {"https": "http/1.1", "grpcs": "h2"}
_PIECE = 1 << 16
_PROXY_TIMEOUT_S = 10


async def serve(url: SplitResult, port: int, certificate: str | None) -> None:
    """Passes connections on until the process is interrupted."""
    context = ssl.create_default_context(cafile=certificate)
    if url.scheme in _PROTOCOLS:
        context.set_alpn_protocols([_PROTOCOLS[url.scheme]])
    proxy = _proxy(url)

    async def open_server() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if url.scheme == "unix":
            return await asyncio.open_unix_connection(url.path)
        address = (url.hostname, url.port or 443)
        if proxy is None:
            return await asyncio.open_connection(*address, ssl=context)
        through = await asyncio.to_thread(_connect, proxy, *address)
        return await asyncio.open_connection(sock=through, ssl=context, server_hostname=address[0])

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server = await open_server()
        except (OSError, http.client.HTTPException) as error:
            print(f"{url.netloc or url.path}: {error}", file=sys.stderr, flush=True)
            writer.close()
            return
        await asyncio.gather(_pass_on(reader, server[1]), _pass_on(server[0], writer))

    listener = await asyncio.start_server(connect, "127.0.0.1", port)
    port = listener.sockets[0].getsockname()[1]
    path = "" if url.scheme == "unix" else url.path
    print(f"{_PLAIN[url.scheme]}://127.0.0.1:{port}{path}", flush=True)
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await ended.wait()


def _proxy(url: SplitResult) -> SplitResult | None:
    """The proxy for a server, by HTTPS_PROXY and NO_PROXY; None for a direct connection."""
    named = getproxies().get("https")
    if url.scheme == "unix" or not named or proxy_bypass(url.hostname):
        return None
    return urlsplit(named if "//" in named else f"//{named}", scheme="http")


def _connect(proxy: SplitResult, host: str, port: int) -> socket.socket:
    """A connection to a host, which a proxy has made.

    Raises:
      OSError: the proxy cannot be reached or refuses.
    """
    headers = {}
    if proxy.username:
        user = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        headers["Proxy-Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
    connection = http.client.HTTPConnection(
        proxy.hostname, proxy.port or 80, timeout=_PROXY_TIMEOUT_S
    )
    connection.set_tunnel(host, port, headers)
    connection.connect()
    connection.sock.setblocking(False)
    return connection.sock


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copies one direction of a connection until it ends; TLS cannot end one direction alone."""
    with suppress(OSError):
        while data := await reader.read(_PIECE):
            writer.write(data)
            await writer.drain()
    writer.close()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "url", type=urlsplit, metavar="URL", help="https://..., grpcs://... or unix:/SOCKET"
    )
    parser.add_argument(
        "--port", type=int, default=9092, help="default: %(default)s; 0: a free one"
    )
    parser.add_argument("--certificate", help="PEM file of the authority; default: the system's")
    arguments = parser.parse_args()
    server = arguments.url.path if arguments.url.scheme == "unix" else arguments.url.hostname
    if arguments.url.scheme not in _PLAIN or not server:
        parser.error("the URL must begin with https://, grpcs:// or unix:/")
    proxy = _proxy(arguments.url)
    if proxy is not None and (proxy.scheme != "http" or not proxy.hostname):
        parser.error("HTTPS_PROXY must be http://HOST:PORT")
    try:
        asyncio.run(serve(arguments.url, arguments.port, arguments.certificate))
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
