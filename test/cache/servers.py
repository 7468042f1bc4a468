"""A cache server for tests: nginx, which stores what is put there as files, and checks tokens."""

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from bazel.pybuild.options import Options
from bazel.pybuild.variables import Secret

_NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin")
needs_nginx = pytest.mark.skipif(_NGINX is None, reason="nginx is not installed")

# Paths are relative to the folder of the server. A file appears under its name when it is complete.
_CONFIGURATION = """\
daemon off;
{user}
pid nginx.pid;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  log_not_found off;
  client_max_body_size 0;
  client_body_temp_path temporary;
  map_hash_bucket_size 512;
  map "$http_authorization $request_method" $refusal {{
    default 401;
    "~^Bearer {write_token} " "";
    "~^Bearer {read_token} (GET|HEAD)$" "";
    "~^Bearer {read_token} " 403;
  }}
  server {{
    listen 127.0.0.1:{port}{tls};
    root entries;
    if ($refusal = 401) {{ return 401; }}
    if ($refusal = 403) {{ return 403; }}
    location ~ "^/(ac|cas)/[0-9a-f]{{64}}$" {{ dav_methods PUT; create_full_put_path on; }}
    location / {{ return 404; }}
  }}
}}
"""


class Server(NamedTuple):
    """A server that runs.

    Attributes:
      folder: with its entries and logs.
      url: as TORCH_XLA_LITE_REMOTE_CACHE has it.
      read_token: for readers.
      write_token: for writers.
    """

    folder: Path
    url: str
    read_token: str
    write_token: str

    def options(self, *, reads: str = "", writes: str = "", certificate: str = "") -> Options:
        """Options of a build that uses this server with these tokens."""
        return Options(
            remote_cache=self.url,
            remote_cache_read_token=Secret(reads) if reads else None,
            remote_cache_write_token=Secret(writes) if writes else None,
            remote_cache_certificate=certificate or None,
        )

    def variables(self, *, writes: bool) -> dict[str, str]:
        """The variables of such a build."""
        name, token = ("WRITE", self.write_token) if writes else ("READ", self.read_token)
        return {
            "TORCH_XLA_LITE_REMOTE_CACHE": self.url,
            f"TORCH_XLA_LITE_REMOTE_CACHE_{name}_TOKEN": token,
        }

    def entries(self) -> list[Path]:
        """The files of the cache."""
        return [path for path in (self.folder / "entries").rglob("*") if path.is_file()]

    def clear(self) -> None:
        """Removes all entries."""
        for path in self.entries():
            path.unlink()


@contextmanager
def server(folder: Path, *, tls: Path | None = None) -> Iterator[Server]:
    """A server that runs within the block; `tls` is the stem of the files of `certificate`."""
    for name in ("entries", "temporary"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    tokens = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    configuration = _CONFIGURATION.format(
        port=port,
        read_token=tokens[0],
        write_token=tokens[1],
        # Processes of root would become another user, who may not read this folder.
        user=f"user {pwd.getpwuid(0).pw_name};" if os.getuid() == 0 else "",
        tls=f' ssl; ssl_certificate "{tls}.pem"; ssl_certificate_key "{tls}.key"' if tls else "",
    )
    file = folder / "nginx.conf"
    file.touch(0o600)
    file.write_text(configuration)
    command = [str(_NGINX), "-p", folder, "-c", "nginx.conf", "-e", "error.log"]
    process = subprocess.Popen(command, cwd=folder)
    try:
        end = time.monotonic() + 60
        while not (folder / "nginx.pid").exists():
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.02)
        yield Server(folder, f"http{'s' if tls else ''}://127.0.0.1:{port}", *tokens)
    finally:
        process.terminate()
        process.wait()


def certificate(stem: Path) -> Path:
    """Writes a certificate for the loopback address, STEM.pem, and its key, STEM.key."""
    name = ("-subj", "/CN=cache", "-addext", "subjectAltName=IP:127.0.0.1")
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    files = ("-keyout", f"{stem}.key", "-out", f"{stem}.pem")
    subprocess.run(
        ["openssl", "req", "-x509", *kind, *name, *files], check=True, capture_output=True
    )
    return stem
