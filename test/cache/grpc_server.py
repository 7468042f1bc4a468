"""A cache server that speaks gRPC: BuildGrid, behind nginx, which checks tokens and has TLS."""

import os
import pwd
import secrets
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

# Importing BuildGrid takes seconds, on a busy machine a minute.
_START_S = 300

_NGINX = """\
daemon off;
{user}
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_max_body_size 0;
  client_body_temp_path {folder};
  proxy_temp_path {folder};
  fastcgi_temp_path {folder};
  uwsgi_temp_path {folder};
  scgi_temp_path {folder};
  map_hash_bucket_size 512;
  map "$http_authorization $uri" $refusal {{
    default 401;
    "~^Bearer {write_token} " "";
    "~^Bearer {read_token} .*/(Read|Get[A-Za-z]*|FindMissingBlobs|BatchReadBlobs)$" "";
    "~^Bearer {read_token} " 403;
  }}
  upstream buildgrid {{
    server unix:buildgrid.sock;
    keepalive 32;
  }}
  server {{
    listen 127.0.0.1:{port}{tls};
    if ($refusal = 401) {{ return 401; }}
    if ($refusal = 403) {{ return 403; }}
    location / {{ grpc_pass grpc://buildgrid; }}
  }}
}}
"""

# The address is relative to the working folder, because a socket's path has 107 characters at most.
# More calls at once than threads are refused.
_BUILDGRID = """\
description: cache
thread-pool-size: 500
server:
  - !channel
    address: unix:buildgrid.sock
    insecure-mode: true
instances:
  - name: ''
    storages:
      - !disk-storage &entries
        path: {folder}/entries
    caches:
      - !lru-action-cache &results
        storage: *entries
        max-cached-refs: 1000000
        cache-failed-actions: false
        allow-updates: true
    services:
      - !action-cache
        cache: *results
      - !cas
        storage: *entries
      - !bytestream
        storage: *entries
"""


@contextmanager
def run(
    folder: Path, buildgrid: Path, tls: Path | None = None
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Runs the server; yields its URL, and the tokens of readers and of writers.

    Args:
      folder: for its files: entries, logs and BuildGrid's socket `buildgrid.sock`.
      buildgrid: the program.
      tls: PEM files TLS.pem and TLS.key.
    """
    (folder / "entries").mkdir(parents=True)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    tokens = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    configuration = _NGINX.format(
        folder=folder,
        port=port,
        read_token=tokens[0],
        write_token=tokens[1],
        # Processes of root would become another user, who may not read this folder.
        user=f"user {pwd.getpwuid(0).pw_name};" if os.getuid() == 0 else "",
        tls=f" ssl http2; ssl_certificate {tls}.pem; ssl_certificate_key {tls}.key"
        if tls
        else " http2",
    )
    (folder / "nginx.conf").write_text(configuration)
    (folder / "buildgrid.yml").write_text(_BUILDGRID.format(folder=folder))
    nginx = [
        "/usr/sbin/nginx",
        "-p",
        folder,
        "-c",
        folder / "nginx.conf",
        "-e",
        folder / "nginx.log",
    ]
    with ExitStack() as running:
        command = [buildgrid, "server", "start", folder / "buildgrid.yml"]
        _start(running, folder, command, folder / "buildgrid.sock")
        _start(running, folder, nginx, folder / "nginx.pid")
        yield f"grpc{'s' if tls else ''}://127.0.0.1:{port}", tokens
    # It has the tokens.
    (folder / "nginx.conf").unlink()


def _start(running: ExitStack, folder: Path, command: Sequence[str | Path], sign: Path) -> None:
    """Starts a process that ends with the stack; waits for the file that shows that it serves."""
    with (folder / f"{sign.stem}.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    running.callback(process.wait)
    running.callback(process.terminate)
    end = time.monotonic() + _START_S
    while not sign.exists():
        assert process.poll() is None and time.monotonic() < end, Path(log.name).read_text()
        time.sleep(0.02)
