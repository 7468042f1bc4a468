"""Cache servers for tests: scripts/cache_server.py, and BuildGrid for gRPC."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from bazel.pybuild.options import Options
from bazel.pybuild.variables import Secret
from test.build.tree import ROOT
from test.cache import grpc_server

SCRIPT = ROOT / "scripts" / "cache_server.py"
TUNNEL = ROOT / "scripts" / "remote" / "cache_tunnel.py"
# Where scripts/test.sh installs it. @python//:buildgrid.txt says whether it did.
BUILDGRID = Path(sys.prefix) / "buildgrid" / "bin" / "bgd"

needs_nginx = pytest.mark.skipif(
    shutil.which("nginx", path="/usr/sbin:/usr/bin") is None, reason="nginx is not installed"
)
needs_buildgrid = pytest.mark.skipif(
    not BUILDGRID.exists(), reason=f"{BUILDGRID} is missing: install test/cache/buildgrid.txt"
)
http_and_grpc = pytest.mark.parametrize(
    "protocol", ["http", pytest.param("grpc", marks=[needs_buildgrid, pytest.mark.nightly])]
)


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

    def damaged(self) -> list[Path]:
        """The blobs whose content is not that of their name."""
        # nginx stores cas/HASH, BuildGrid cas/objects/HA/SH.
        blobs = [path for path in self.entries() if "ac" not in path.parts]
        return [
            blob
            for blob in blobs
            if not hashlib.sha256(blob.read_bytes()).hexdigest().endswith(blob.name)
        ]

    def clear(self) -> None:
        """Removes all entries."""
        for path in self.entries():
            path.unlink()


def run(command: str, folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """Runs a command of the script; its exit code is not checked."""
    return subprocess.run(
        [sys.executable, SCRIPT, command, folder, *options],
        capture_output=True,
        text=True,
        check=False,
    )


@contextmanager
def server(folder: Path, protocol: str, *options: str, tls: Path | None = None) -> Iterator[Server]:
    """A server that runs within the block.

    Args:
      folder: for its files.
      protocol: "http", which is scripts/cache_server.py, or "grpc".
      *options: of the script.
      tls: stem of the files that `certificate` has written.
    """
    if protocol == "grpc":
        with grpc_server.run(folder, BUILDGRID, tls) as (url, tokens):
            yield Server(folder, url, *tokens)
        return
    if tls:
        options += ("--certificate", f"{tls}.pem", "--key", f"{tls}.key")
    try:
        process = run("start", folder, "--port", "0", *options)
        assert process.returncode == 0, process.stderr
        url = json.loads((folder / "server.json").read_text())["url"]
        tokens = [(folder / f"{role}-token").read_text().strip() for role in ("read", "write")]
        yield Server(folder, url, *tokens)
    finally:
        run("stop", folder)


@contextmanager
def tunnel(url: str, authority: Path | None = None, **variables: str) -> Iterator[str]:
    """The URL of a tunnel to a server; the authority has signed its certificate."""
    command = [sys.executable, TUNNEL, url, "--port", "0"]
    command += ["--certificate", str(authority)] if authority else []
    environ = os.environ | variables
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()
    assert process.returncode == 0


def certificate(stem: Path) -> Path:
    """Writes a certificate, STEM.pem, and its key, STEM.key.

    It is for the loopback address, and for cache.example, which does not exist.
    """
    names = "subjectAltName=IP:127.0.0.1,DNS:cache.example"
    name = ("-subj", "/CN=cache", "-addext", names)
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    files = ("-keyout", f"{stem}.key", "-out", f"{stem}.pem")
    subprocess.run(
        ["openssl", "req", "-x509", *kind, *name, *files], check=True, capture_output=True
    )
    return stem
