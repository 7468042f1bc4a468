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

The first line of standard output is the URL for TORCH_XLA_LITE_REMOTE_CACHE.
"""

import argparse
import asyncio
import signal
import ssl
import sys
from contextlib import suppress
from urllib.parse import SplitResult, urlsplit

_PLAIN = {"https": "http", "grpcs": "grpc", "unix": "grpc"}
# What the two sides agree on when the connection is made.
_PROTOCOLS = {"https": "http/1.1", "grpcs": "h2"}
_PIECE = 1 << 16


async def serve(url: SplitResult, port: int, certificate: str | None) -> None:
    """Passes connections on until the process is interrupted."""
    context = ssl.create_default_context(cafile=certificate)
    if url.scheme in _PROTOCOLS:
        context.set_alpn_protocols([_PROTOCOLS[url.scheme]])

    async def open_server() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if url.scheme == "unix":
            return await asyncio.open_unix_connection(url.path)
        return await asyncio.open_connection(url.hostname, url.port or 443, ssl=context)

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server = await open_server()
        except OSError as error:
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
    try:
        asyncio.run(serve(arguments.url, arguments.port, arguments.certificate))
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
