"""Cache servers of scripts/cache_server.py, for tests."""

import json
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

SCRIPT = ROOT / "scripts" / "cache_server.py"
TUNNEL = ROOT / "scripts" / "cache_tunnel.py"
# Where scripts/test.sh installs it. @python//:buildgrid.txt says whether it did.
BUILDGRID = Path(sys.prefix) / "buildgrid" / "bin" / "bgd"

needs_nginx = pytest.mark.skipif(
    shutil.which("nginx", path="/usr/sbin:/usr/bin") is None, reason="nginx is not installed"
)
needs_buildgrid = pytest.mark.skipif(
    not BUILDGRID.exists(), reason=f"{BUILDGRID} is missing: install scripts/cache_server.txt"
)
http_and_grpc = pytest.mark.parametrize(
    "protocol", ["http", pytest.param("grpc", marks=needs_buildgrid)]
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


def run(command: str, folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """Runs a command of the script; its exit code is not checked."""
    return subprocess.run(
        [sys.executable, SCRIPT, command, folder, *options],
        capture_output=True,
        text=True,
        check=False,
    )


def start(folder: Path, protocol: str, *options: str) -> Server:
    """Starts a server, which has to succeed."""
    words = ("--protocol", protocol, "--port", "0", "--buildgrid", str(BUILDGRID), *options)
    process = run("start", folder, *words)
    assert process.returncode == 0, process.stderr
    url = json.loads((folder / "server.json").read_text())["url"]
    tokens = [(folder / f"{role}-token").read_text().strip() for role in ("read", "write")]
    return Server(folder, url, *tokens)


@contextmanager
def server(folder: Path, protocol: str, *options: str) -> Iterator[Server]:
    """A server that is stopped at the end."""
    try:
        yield start(folder, protocol, *options)
    finally:
        run("stop", folder)


@contextmanager
def tunnel(url: str, authority: Path | None = None) -> Iterator[str]:
    """The URL of a tunnel to a server; the authority has signed its certificate."""
    command = [sys.executable, TUNNEL, url, "--port", "0"]
    command += ["--certificate", str(authority)] if authority else []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()
    assert process.returncode == 0


def certificate(stem: Path) -> Path:
    """Writes a certificate for the loopback address, STEM.pem, and its key, STEM.key."""
    name = ("-subj", "/CN=cache", "-addext", "subjectAltName=IP:127.0.0.1")
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    files = ("-keyout", f"{stem}.key", "-out", f"{stem}.pem")
    subprocess.run(
        ["openssl", "req", "-x509", *kind, *name, *files], check=True, capture_output=True
    )
    return stem
