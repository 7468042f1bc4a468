"""docs/remote_execution.md: a build with the three flags runs on the worker of an engine."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

import pytest

from test.build.nested import OUTPUTS, Nested
from test.build.tree import ROOT

# Where scripts/test.sh installs BuildGrid. @python//:buildgrid.txt says whether it did.
_BUILDGRID = Path(sys.prefix) / "buildgrid" / "bin"
# Its scheduler needs PostgreSQL, whose server does not run as root.
_POSTGRES = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"))), Path("/none"))
_AS_POSTGRES = ("setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups")
_WORKER = ROOT / "test" / "cache" / "worker.py"
# Importing BuildGrid takes seconds, on a busy machine a minute.
_START_S = 300

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not (_BUILDGRID / "bgd").exists(), reason="BuildGrid is not installed"),
    pytest.mark.skipif(not _POSTGRES.exists(), reason="PostgreSQL is not installed"),
    pytest.mark.skipif(os.getuid() != 0, reason="only root may become the user of PostgreSQL"),
]

# Each waiting action, worker and upload has a thread of the engine.
_ENGINE = """\
server:
  - !channel
    address: "{address}"
    insecure-mode: true
authorization:
  method: none
monitoring:
  enabled: false
thread-pool-size: 200
connections:
  - !sql-connection &sql
    connection-string: "{database}"
    pool-size: 20
storages:
  - !disk-storage &storage
    path: {folder}/storage
caches:
  - !lru-action-cache &results
    storage: *storage
    max-cached-refs: 100000
    allow-updates: true
schedulers:
  - !sql-scheduler &scheduler
    sql: *sql
    storage: *storage
    action-cache: *results
    bot-session-keepalive-timeout: 60
    property-set: !static-property-set
      property-labels:
        - {{ label: linux, properties: [[OSFamily, linux], [toolchain, {toolchain}]] }}
      wildcard-property-keys: []
instances:
  - name: ''
    services:
      - !action-cache
        cache: *results
      - !execution
        scheduler: *scheduler
      - !cas
        storage: *storage
      - !bytestream
        storage: *storage
"""


class _Engine(NamedTuple):
    """An engine with one worker.

    Attributes:
      address: HOST:PORT.
      log: what the worker has written, the outputs of each action in a line.
    """

    address: str
    log: Path


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Nested]:
    with closing(Nested(tmp_path / "tree", tmp_path / "shared")) as made:
        yield made


@pytest.fixture
def engine(tree: Nested, tmp_path: Path) -> Iterator[_Engine]:
    folder = tmp_path / "engine"
    folder.mkdir()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    tree.configure()
    toolchain = _toolchain(tree)
    configuration = folder / "engine.yml"
    with ExitStack() as running:
        # The folders of pytest are closed to other users.
        data = Path(running.enter_context(tempfile.TemporaryDirectory()))
        shutil.chown(data, "postgres", "postgres")
        create = [_POSTGRES / "initdb", "-A", "trust", "-U", "bgd", "-D", data / "data"]
        subprocess.run([*_AS_POSTGRES, *create], check=True, stdout=subprocess.DEVNULL)
        database = f"postgresql+psycopg2://bgd@/postgres?host={data}"
        configuration.write_text(
            _ENGINE.format(address=address, database=database, folder=folder, toolchain=toolchain)
        )
        server = [*_AS_POSTGRES, _POSTGRES / "postgres", "-D", data / "data", "-k", data]
        server += ["-c", "listen_addresses=", "-c", "fsync=off"]
        _start(running, folder / "database.log", server, "ready to accept connections")
        subprocess.run([_BUILDGRID / "bgd", "migrate", "apply", database], check=True)
        command = [_BUILDGRID / "bgd", "server", "start", configuration]
        _start(running, folder / "engine.log", command, "Starting BuildGrid server")
        properties = ("OSFamily=linux", f"toolchain={toolchain}")
        worker = [_BUILDGRID / "python", _WORKER, address, *properties]
        _start(running, folder / "worker.log", worker, "")
        yield _Engine(address, folder / "worker.log")


def _toolchain(tree: Nested) -> str:
    """The fingerprint that each action demands of a worker."""
    settings = (tree.root / ".bazelrc.generated").read_text()
    (found,) = set(re.findall(r"--remote_default_exec_properties=toolchain=(\w+)", settings))
    return found


def _start(running: ExitStack, log: Path, command: Sequence[object], sign: str) -> None:
    """Starts a process that ends with the stack; waits until it has written a text."""
    # gRPC would ask a proxy for the engine.
    environ = {name: text for name, text in os.environ.items() if "proxy" not in name.lower()}
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(map(str, command)), stdout=output, stderr=output, env=environ
        )
    running.callback(process.wait)
    running.callback(process.terminate)
    end = time.monotonic() + _START_S
    while sign not in log.read_text(errors="replace"):
        assert process.poll() is None and time.monotonic() < end, log.read_text(errors="replace")
        time.sleep(0.2)


def test_a_build_with_three_flags_runs_on_the_worker_and_makes_the_same_bytes(
    tree: Nested, engine: _Engine
):
    page = (ROOT / "docs" / "remote_execution.md").read_text()
    flags = re.search(r"```\n(build --remote_executor=.*?)```", page, re.DOTALL)
    assert flags is not None
    local = _built(tree)
    user = re.sub(r"grpc://[\w.]+:\d+", f"grpc://{engine.address}", flags[1])
    # Bazel 4 refuses a disk cache beside an engine.
    (tree.root / ".bazelrc.user").write_text(user + "build --disk_cache=\n")
    assert tree.bazel("clean").returncode == 0
    assert _built(tree) == local
    made = {Path(name).name for name in engine.log.read_text().split()}
    assert {"one.pic.o", "two.pic.o", "libtorch_xla_lite.so"} <= made


def _built(tree: Nested) -> list[bytes]:
    """The outputs of a build without a disk cache."""
    process = tree.bazel("build", "--disk_cache=", OUTPUTS)
    assert process.returncode == 0, process.stderr
    folder = Path(tree.bazel("info", "bazel-bin").stdout.strip())
    return [file.read_bytes() for file in sorted(folder.rglob("*.so")) if file.is_file()]
