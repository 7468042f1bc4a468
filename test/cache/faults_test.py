"""Builds with a broken cache, each with a real server: the result is right, and one line says why.

Every build starts without outputs. Its disk cache is off, unless the test is about that.
"""

import functools
import hashlib
import http.client
import math
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from test.build import npm
from test.build.nested import OUTPUTS, Nested
from test.build.shell import program
from test.cache.relay import relay
from test.cache.servers import (
    Server,
    certificate,
    http_and_grpc,
    needs_buildgrid,
    needs_nginx,
    server,
    tunnel,
)

pytestmark = needs_nginx

# Compilers, linkers and others that a build without a cache starts.
_ALL = 4

# A build that waits longer for a broken cache has Bazel's own timeouts: 60 s, five times an action.
_LATER_S = 300


class Built(NamedTuple):
    """What a build did.

    Attributes:
      ran: number of actions that ran.
      hits: number of results from a cache.
      said: lines of standard error.
      outputs: content of what was built.
      seconds: that it took.
    """

    ran: int
    hits: int
    said: list[str]
    outputs: list[bytes]
    seconds: float


class Tree(Nested):
    """A tree whose builds start without outputs.

    Attributes:
      limit_s: that a build may take.
    """

    limit_s = math.inf

    def build(self, *, disk: str = "", **variables: str) -> Built:
        """Builds, which has to succeed in time."""
        assert self.bazel("clean").returncode == 0
        disk_cache = f"--disk_cache={disk} --noshow_progress"
        begin = time.monotonic()
        process = self.must("develop", TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS=disk_cache, **variables)
        seconds = time.monotonic() - begin
        assert seconds < self.limit_s, process.stdout + process.stderr
        report = self.report()
        hits = report["cache_hits"]
        return Built(
            ran=sum(report["actions"].values()),
            hits=(hits["disk"] or 0) + (hits["remote"] or 0),
            said=process.stderr.splitlines(),
            outputs=[file.read_bytes() for file in self.outputs],
            seconds=seconds,
        )


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    with closing(Tree(tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("shared"))) as made:
        yield made


@pytest.fixture(scope="module")
def right(tree: Tree) -> Built:
    """A build without a cache. It starts Bazel's server, which the others do not."""
    built = tree.build()
    assert (built.ran, built.hits, built.said) == (_ALL, 0, [])
    tree.limit_s = built.seconds + _LATER_S
    return built


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Server]]:
    """The server of a protocol, which is started once."""
    folder = tmp_path_factory.mktemp("servers")
    with ExitStack() as running:
        yield functools.cache(lambda kind: running.enter_context(server(folder / kind, kind)))


@pytest.fixture
def cache(servers: Callable[[str], Server], tree: Tree, right: Built, protocol: str) -> Server:
    """A server that has all results."""
    cache = servers(protocol)
    for blob in cache.damaged():
        blob.unlink()
    tree.build(**cache.variables(writes=True))
    return cache


def _url(cache: Server, port: int) -> dict[str, str]:
    """Variables for a writer that reaches the server by another port."""
    variables = cache.variables(writes=True)
    scheme = cache.url.partition(":")[0]
    return {**variables, "TORCH_XLA_LITE_REMOTE_CACHE": f"{scheme}://127.0.0.1:{port}"}


@http_and_grpc
def test_a_reader_runs_no_action_that_a_writer_has_run(tree: Tree, right: Built, cache: Server):
    built = tree.build(**cache.variables(writes=False))
    assert (built.ran, built.hits, built.said) == (0, _ALL, [])
    assert built.outputs == right.outputs


@pytest.mark.nightly
@pytest.mark.parametrize("protocol", [pytest.param("grpc", marks=needs_buildgrid)])
def test_a_unix_socket_is_used_or_else_the_tunnel_is_named_which_makes_it_usable(
    tree: Tree, right: Built, cache: Server, tmp_path: Path
):
    # Its path has at most 107 characters.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        link = Path(folder, "socket")
        link.symlink_to(cache.folder / "buildgrid.sock")
        url = f"unix:{link}"
        direct = tree.build(TORCH_XLA_LITE_REMOTE_CACHE=url)
        with tunnel(url) as port:
            through = tree.build(TORCH_XLA_LITE_REMOTE_CACHE=port)
    # Debian's 4.2.3 fails, which ends its server; Debian's 7.7.1 goes on without the cache.
    named = "".join(direct.said[-1:]).endswith(
        "; a Bazel without Unix sockets, such as Debian's, needs scripts/remote/cache_tunnel.py"
    )
    assert (direct.ran, direct.hits) == ((_ALL, 0) if named else (0, _ALL))
    assert (through.ran, through.hits) == (0, _ALL)
    assert direct.outputs == through.outputs == right.outputs


@pytest.mark.nightly
@pytest.mark.parametrize("protocol", ["http"])
def test_bazel_itself_uses_the_cache_after_setup_py(tree: Tree, cache: Server):
    tree.build(**cache.variables(writes=False))
    tree.bazel("clean")
    process = tree.bazel("build", "--config=remote-cache", "--disk_cache=", OUTPUTS)
    assert f"{_ALL} remote cache hit" in process.stderr
    tree.build()
    process = tree.bazel("build", "--config=remote-cache", OUTPUTS)
    assert "'remote-cache' is not defined" in process.stderr


@http_and_grpc
def test_credentials_are_in_one_private_file_only(tree: Tree, cache: Server):
    variables = cache.variables(writes=True)
    token = cache.write_token
    tree.configure(**variables)
    # As a user calls it whose shell has the variables.
    tree.bazel("info", **variables)
    tree.build(**variables)
    process = tree.must("options", **variables)
    assert token not in process.stdout + process.stderr
    private = tree.root / ".bazelrc.generated.remote-cache"
    assert token in private.read_text()
    assert private.stat().st_mode & 0o077 == 0
    command = ["grep", "-rlF", "--", token, tree.root.parent, tree.shared]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.stdout.split() == [str(private)]
    # Bazel's server still runs.
    for command_line in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            assert token.encode() not in command_line.read_bytes()


@pytest.mark.nightly
@pytest.mark.parametrize("protocol", ["http"])
def test_nobody_else_can_read_the_logs_of_a_bazel_that_setup_py_did_not_call(
    tree: Tree, cache: Server, tmp_path: Path
):
    with closing(Tree(tmp_path, tree.shared)) as other:
        other.configure(**cache.variables(writes=True))
        other.bazel("build", "--config=remote-cache", OUTPUTS, check=True)
        base = Path(other.bazel("info", "output_base").stdout.strip())
        assert base.stat().st_mode & 0o077 == 0


def test_a_malformed_token_is_not_shown(tree: Tree):
    process = tree.setup("develop", TORCH_XLA_LITE_REMOTE_CACHE_READ_TOKEN="se cret")
    assert process.returncode == 1
    assert "TORCH_XLA_LITE_REMOTE_CACHE_READ_TOKEN=... is not a token" in process.stderr
    assert "cret" not in process.stdout + process.stderr.replace("secret", "")


def test_a_url_with_a_password_is_refused_and_not_shown(tree: Tree):
    process = tree.setup("develop", TORCH_XLA_LITE_REMOTE_CACHE="http://me:pa55@127.0.0.1:9")
    assert process.returncode == 1
    assert "pa55" not in process.stdout + process.stderr


def _check_unused(built: Built, right: Built, reason: str) -> None:
    assert built.said == [f"torch_xla_lite: the remote cache is not used: {reason}"]
    assert (built.ran, built.outputs) == (_ALL, right.outputs)


@pytest.mark.parametrize("protocol", ["http", pytest.param("grpc", marks=pytest.mark.nightly)])
def test_a_server_that_is_down_is_not_used(tree: Tree, right: Built, protocol: str):
    built = tree.build(TORCH_XLA_LITE_REMOTE_CACHE=f"{protocol}://127.0.0.1:9")
    _check_unused(built, right, "Connection refused")


@pytest.mark.nightly
@pytest.mark.parametrize("protocol", ["http", "grpcs"])
def test_a_server_that_never_answers_is_not_used(tree: Tree, right: Built, protocol: str):
    # The system accepts connections.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"{protocol}://127.0.0.1:{listener.getsockname()[1]}"
        built = tree.build(TORCH_XLA_LITE_REMOTE_CACHE=url)
    _check_unused(built, right, "it does not answer within 3 s")


@pytest.mark.nightly
@pytest.mark.parametrize("protocol", ["http"])
def test_bazelisk_is_interrupted_with_its_bazel(
    tree: Tree, right: Built, cache: Server, tmp_path: Path
):
    variables = {
        "USE_BAZEL_VERSION": npm.bazel_of_bazelisk(),
        "TORCH_XLA_LITE_BAZEL": str(npm.bazelisk(tmp_path)),
    }
    cache.clear()
    with relay(cache.url) as between:
        between.silent_after = 3000
        built = tree.build(**_url(cache, between.port), **variables)
    assert "torch_xla_lite: the remote cache was switched off during the build: " in built.said[-1]
    assert built.outputs == right.outputs


def test_run_bazel_is_like_bazel_where_there_is_no_cache(tree: Tree, right: Built):
    tree.configure()
    assert tree.run_bazel("build", OUTPUTS).returncode == 0
    process = tree.run_bazel("build", "//:unknown")
    assert process.returncode == tree.bazel("build", "//:unknown").returncode
    url = {"TORCH_XLA_LITE_REMOTE_CACHE": "ftp://127.0.0.1"}
    process = tree.run_bazel("build", "--config=remote-cache", OUTPUTS, **url)
    assert process.returncode == 1
    assert process.stderr.startswith("error: TORCH_XLA_LITE_REMOTE_CACHE")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("protocol", "silent_after"),
    [("http", 0), ("http", 3000), pytest.param("grpc", 3000, marks=needs_buildgrid)],
)
def test_a_bazel_that_setup_py_does_not_call_leaves_a_silent_server(
    tree: Tree, right: Built, cache: Server, silent_after: int
):
    """As scripts/test.sh calls it."""
    cache.clear()
    with relay(cache.url) as between:
        variables = _url(cache, between.port)
        tree.configure(**variables)
        assert tree.bazel("clean").returncode == 0
        between.silent_after = silent_after
        begin = time.monotonic()
        process = tree.run_bazel(
            "build", "--config=remote-cache", "--disk_cache=", OUTPUTS, **variables
        )
        assert time.monotonic() - begin < tree.limit_s
    assert process.returncode == 0, process.stderr
    last = process.stderr.splitlines()[-1]
    when = "was switched off during the build" if silent_after else "is not used"
    assert last == f"torch_xla_lite: the remote cache {when}: it does not answer within 3 s"
    # Bazel's server has written the options of the rc file to its log.
    base = (tree.root / "bazel-out").resolve().parents[2]
    assert cache.write_token not in (base / "java.log").read_text()


@pytest.mark.nightly
@http_and_grpc
def test_a_server_that_becomes_silent_is_left(tree: Tree, right: Built, cache: Server):
    cache.clear()
    with relay(cache.url) as between:
        between.silent_after = 3000
        built = tree.build(**_url(cache, between.port))
    # Before that, Bazel says that it was interrupted.
    (line,) = [line for line in built.said if "torch_xla_lite:" in line]
    assert line.endswith(" switched off during the build: it does not answer within 3 s")
    assert (built.ran, built.outputs) == (_ALL, right.outputs)


@pytest.mark.nightly
@http_and_grpc
def test_a_slow_server_is_used(tree: Tree, right: Built, cache: Server):
    with relay(cache.url) as between:
        between.wait = 0.5
        built = tree.build(**_url(cache, between.port))
    (line,) = built.said
    assert line.startswith("torch_xla_lite: the remote cache is used, but it takes ")
    assert (built.ran, built.hits, built.outputs) == (0, _ALL, right.outputs)


@pytest.mark.nightly
@http_and_grpc
def test_a_wrong_token_reads_nothing(tree: Tree, right: Built, cache: Server, protocol: str):
    variables = {**cache.variables(writes=False), "TORCH_XLA_LITE_REMOTE_CACHE_READ_TOKEN": "wrong"}
    built = tree.build(**variables)
    line = "torch_xla_lite: the remote cache is not used: it answers 401 Unauthorized"
    # With gRPC, only Bazel shows the token; some versions warn, and some fail until it is not used.
    assert built.said == [line] if protocol == "http" else any("401" in said for said in built.said)
    assert (built.ran, built.outputs) == (_ALL, right.outputs)


@pytest.mark.nightly
@http_and_grpc
@pytest.mark.parametrize("pretends", [False, True])
def test_without_the_write_token_nothing_is_stored(
    tree: Tree, right: Built, cache: Server, protocol: str, pretends: bool
):
    cache.clear()
    role = "WRITE" if pretends else "READ"
    built = tree.build(
        **{
            "TORCH_XLA_LITE_REMOTE_CACHE": cache.url,
            f"TORCH_XLA_LITE_REMOTE_CACHE_{role}_TOKEN": cache.read_token,
        }
    )
    assert cache.entries() == []
    line = "torch_xla_lite: the remote cache is used, but it does not store results: "
    if pretends and protocol == "grpc":
        # Only Bazel shows the token, and what it says depends on its version.
        assert built.said[-1].startswith(line[:32])
    else:
        assert built.said == ([f"{line}it answers 403 Forbidden"] if pretends else [])
    assert (built.ran, built.outputs) == (_ALL, right.outputs)


@pytest.mark.nightly
@http_and_grpc
def test_a_server_with_an_unknown_certificate_is_not_used(
    tree: Tree, right: Built, protocol: str, tmp_path: Path
):
    stem = certificate(tmp_path / "unknown")
    with server(tmp_path / "cache", protocol, tls=stem) as cache:
        built = tree.build(**cache.variables(writes=True))
    _check_unused(built, right, "self-signed certificate")


@pytest.mark.nightly
@http_and_grpc
def test_a_bazel_without_tls_builds_without_the_cache_and_names_the_tunnel(
    tree: Tree, right: Built, protocol: str, tmp_path: Path
):
    """Debian's builds of Bazel cannot use TLS, and 4.2.3 crashes with gRPC; others can."""
    stem = certificate(tmp_path / "known")
    with server(tmp_path / "cache", protocol, tls=stem) as cache:
        variables = cache.variables(writes=True)
        variables["TORCH_XLA_LITE_REMOTE_CACHE_CERTIFICATE"] = f"{stem}.pem"
        built = tree.build(**variables)
        again = tree.build(**variables)
    failed = built.said != []
    named = any("needs scripts/remote/cache_tunnel.py" in line for line in built.said)
    # Bazel 7.7.1 does not crash.
    assert not failed or named or "init TLS" in built.said[-1]
    assert again.hits == (0 if failed else _ALL)
    assert (built.ran, built.outputs, again.outputs) == (_ALL, right.outputs, right.outputs)


@pytest.mark.nightly
@http_and_grpc
def test_a_tunnel_gives_the_cache_to_a_bazel_without_tls(
    tree: Tree, right: Built, protocol: str, tmp_path: Path
):
    stem = certificate(tmp_path / "known")
    with (
        server(tmp_path / "cache", protocol, tls=stem) as cache,
        tunnel(cache.url, Path(f"{stem}.pem")) as url,
    ):
        through = cache._replace(url=url)
        written = tree.build(**through.variables(writes=True))
        read = tree.build(**through.variables(writes=False))
    assert (written.ran, written.said) == (_ALL, [])
    assert (read.hits, read.said, read.outputs) == (_ALL, [], right.outputs)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(mount, check=False).returncode != 0:
        pytest.skip("only root can mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.nightly
@http_and_grpc
def test_a_full_disk_of_the_server_costs_only_the_storing(
    tree: Tree, right: Built, protocol: str, small_disk: Path
):
    with server(small_disk, protocol) as cache:
        with suppress(OSError), (small_disk / "filler").open("wb") as filler:
            while True:
                filler.write(bytes(4096))
        built = tree.build(**cache.variables(writes=True))
    (line,) = built.said
    assert "does not store results: " in line or "did not store all results: " in line
    assert (built.ran, built.outputs) == (_ALL, right.outputs)


@pytest.mark.nightly
@http_and_grpc
def test_a_connection_that_breaks_in_an_upload_leaves_no_damaged_entry(
    tree: Tree, right: Built, cache: Server
):
    cache.clear()
    with relay(cache.url) as between:
        between.cut_after = 12000
        built = tree.build(**_url(cache, between.port))
    (line,) = built.said
    assert "did not store all results: " in line
    assert (built.ran, built.outputs) == (_ALL, right.outputs)
    assert cache.damaged() == []
    tree.build(**cache.variables(writes=True))
    assert tree.build(**cache.variables(writes=False)).hits == _ALL


def _flip(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(bytes([content[0] ^ 1]) + content[1:])


def _cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def _empty(file: Path) -> None:
    os.truncate(file, 0)


def _garbage(file: Path) -> None:
    file.write_bytes(b"\xff garbage " * 20)


_DAMAGES = [("ac", _empty), ("ac", _garbage), ("cas", _flip), ("cas", _cut)]


def _check_damaged(built: Built, right: Built) -> None:
    """Checks a build that has met a damaged cache."""
    # Bazel may have said which action it could not use.
    (_,) = [line for line in built.said if line.startswith("torch_xla_lite: ")]
    assert built.ran > 0
    assert built.outputs == right.outputs


@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "damage"), _DAMAGES)
@pytest.mark.parametrize("protocol", ["http"])
def test_damaged_entries_of_an_http_server_are_replaced_by_a_writer(
    tree: Tree, right: Built, cache: Server, kind: str, damage: Callable[[Path], None]
):
    for entry in cache.entries():
        if entry.parent.name == kind:
            damage(entry)
    _check_damaged(tree.build(**cache.variables(writes=False)), right)
    _check_damaged(tree.build(**cache.variables(writes=True)), right)
    built = tree.build(**cache.variables(writes=False))
    assert (built.ran, built.said, built.outputs) == (0, [], right.outputs)


@pytest.mark.nightly
@pytest.mark.parametrize("damage", [_flip, _cut])
@pytest.mark.parametrize("protocol", [pytest.param("grpc", marks=needs_buildgrid)])
def test_damaged_entries_of_a_grpc_server_are_not_used(
    tree: Tree, right: Built, cache: Server, damage: Callable[[Path], None]
):
    for entry in cache.entries():
        damage(entry)
    _check_damaged(tree.build(**cache.variables(writes=True)), right)


@pytest.mark.parametrize(
    ("kind", "damage"),
    [*(pytest.param(*each, marks=pytest.mark.nightly) for each in _DAMAGES[:-1]), _DAMAGES[-1]],
)
def test_damaged_entries_of_the_disk_cache_are_replaced(
    tree: Tree, right: Built, kind: str, damage: Callable[[Path], None], tmp_path: Path
):
    disk = tmp_path / "disk"
    tree.build(disk=str(disk))
    for entry in disk.glob(f"{kind}/*/*"):
        damage(entry)
    _check_damaged(tree.build(disk=str(disk)), right)
    # Results of actions are removed first.
    tree.build(disk=str(disk))
    built = tree.build(disk=str(disk))
    assert (built.ran, built.said, built.outputs) == (0, [], right.outputs)


@pytest.mark.nightly
@http_and_grpc
def test_results_whose_outputs_were_evicted_are_misses(tree: Tree, right: Built, cache: Server):
    for entry in cache.entries():
        if entry.parent.name != "ac":
            entry.unlink()
    built = tree.build(**cache.variables(writes=True))
    assert (built.ran, built.said, built.outputs) == (_ALL, [], right.outputs)
    assert tree.build(**cache.variables(writes=False)).hits == _ALL


@pytest.mark.nightly
def test_results_whose_outputs_left_the_disk_cache_are_misses(
    tree: Tree, right: Built, tmp_path: Path
):
    disk = tmp_path / "disk"
    tree.build(disk=str(disk))
    for entry in disk.glob("cas/*/*"):
        entry.unlink()
    built = tree.build(disk=str(disk))
    assert (built.ran, built.said, built.outputs) == (_ALL, [], right.outputs)
    assert tree.build(disk=str(disk)).hits == _ALL


@pytest.mark.nightly
@http_and_grpc
def test_results_of_another_compiler_are_misses(
    tree: Tree, right: Built, cache: Server, tmp_path: Path
):
    compiler = tmp_path / "compiler"
    for option, writes, hits in (("-DONE", True, 0), ("-DTWO", False, 0), ("-DONE", False, _ALL)):
        program(compiler, f'exec /usr/bin/g++ {option} "$@"')
        built = tree.build(**cache.variables(writes=writes), CC=str(compiler))
        assert (built.ran, built.hits) == (_ALL - hits, hits)


def _http_client(cache: Server, client: int) -> bool:
    """Writes blobs and reads them; all clients write the first one."""
    url = urlsplit(cache.url)
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=60)
    headers = {"Authorization": f"Bearer {cache.write_token}"}
    blobs = [f"blob {client if n else 'shared'} {n} ".encode() * 2000 for n in range(8)]
    for blob in blobs * 2:
        path = f"/cas/{hashlib.sha256(blob).hexdigest()}"
        connection.request("PUT", path, blob, headers)
        stored = connection.getresponse()
        stored.read()
        connection.request("GET", path, headers=headers)
        if stored.status not in (201, 204) or connection.getresponse().read() != blob:
            return False
    connection.close()
    return True


@pytest.mark.nightly
@pytest.mark.parametrize("protocol", ["http"])
def test_sixteen_clients_and_two_builds_at_once_lose_nothing(
    tree: Tree, right: Built, cache: Server, tmp_path: Path
):
    cache.clear()
    with closing(Tree(tmp_path, tree.shared)) as other:
        other.write("one.cc", "int one() { return 3; }\n")
        with ThreadPoolExecutor(18) as pool:
            builds = [
                pool.submit(each.build, **cache.variables(writes=True)) for each in (tree, other)
            ]
            clients = [pool.submit(_http_client, cache, number) for number in range(16)]
            assert all(client.result() for client in clients)
            assert [build.result().said for build in builds] == [[], []]
        for each in (tree, other):
            built = each.build(**cache.variables(writes=False))
            assert (built.ran, built.said) == (0, [])
    assert cache.damaged() == []
