"""Builds with a cache, whole and broken, each with a real server: the result is right, and one line
says what was wrong.

Every build starts without outputs. Its disk cache is off, unless the test is about that.
"""

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from test.build.nested import OUTPUTS, Nested
from test.build.shell import program
from test.cache.servers import Server, needs_nginx, server

pytestmark = needs_nginx

# Compilers, linkers and others that a build without a cache starts.
_ALL = 4


class Built(NamedTuple):
    """What a build did.

    Attributes:
      ran: number of actions that ran.
      hits: number of results from a cache.
      said: lines of standard error.
      outputs: content of what was built.
    """

    ran: int
    hits: int
    said: list[str]
    outputs: list[bytes]

    def ours(self) -> list[str]:
        """What setup.py said, without Bazel's messages."""
        return [line for line in self.said if line.startswith("torch_xla_lite: ")]


class Tree(Nested):
    """A tree whose builds start without outputs."""

    def build(self, *, disk: str = "", **variables: str) -> Built:
        """Builds, which has to succeed."""
        assert self.bazel("clean").returncode == 0
        disk_cache = f"--disk_cache={disk} --noshow_progress"
        process = self.must("develop", TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS=disk_cache, **variables)
        report = self.report()
        hits = report["cache_hits"]
        return Built(
            ran=sum(report["actions"].values()),
            hits=(hits["disk"] or 0) + (hits["remote"] or 0),
            said=process.stderr.splitlines(),
            outputs=[file.read_bytes() for file in self.outputs],
        )


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    with closing(Tree(tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("shared"))) as made:
        yield made


@pytest.fixture(scope="module")
def right(tree: Tree) -> Built:
    """A build without a cache. It starts Bazel's server, which the others do not."""
    built = tree.build()
    assert (built.ran, built.hits, built.ours()) == (_ALL, 0, [])
    return built


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, tree: Tree, right: Built) -> Iterator[Server]:
    with server(tmp_path_factory.mktemp("server")) as cache:
        yield cache


@pytest.fixture
def cache(filled: Server, tree: Tree) -> Server:
    """A server that has all results."""
    tree.build(**filled.variables(writes=True))
    return filled


def test_a_reader_runs_no_action_that_a_writer_has_run(tree: Tree, right: Built, cache: Server):
    built = tree.build(**cache.variables(writes=False))
    assert (built.ran, built.hits, built.ours()) == (0, _ALL, [])
    assert built.outputs == right.outputs


@pytest.mark.nightly
def test_bazel_itself_uses_the_cache_after_setup_py(tree: Tree, cache: Server):
    tree.build(**cache.variables(writes=False))
    tree.bazel("clean")
    process = tree.bazel("build", "--config=remote-cache", "--disk_cache=", OUTPUTS)
    assert f"{_ALL} remote cache hit" in process.stderr
    tree.build()
    process = tree.bazel("build", "--config=remote-cache", OUTPUTS)
    assert "'remote-cache' is not defined" in process.stderr


def test_credentials_are_where_nobody_else_can_read_them(tree: Tree, cache: Server):
    variables = cache.variables(writes=True)
    token = cache.write_token
    tree.configure(**variables)
    # A user calls it in a shell that has the variables.
    tree.bazel("info", **variables)
    tree.build(**variables)
    process = tree.must("options", **variables)
    assert token not in process.stdout + process.stderr
    command = ["grep", "-rlF", "--", token, tree.root.parent, tree.shared]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    assert str(tree.root / ".bazelrc.generated.remote-cache") in found
    for file in map(Path, found):
        # Bazel 4 writes the options of rc files to the log in its folder, which is closed.
        places = (file, *(place for place in file.parents if place.is_relative_to(tree.shared)))
        assert any(place.stat().st_mode & 0o077 == 0 for place in places), file
    # Bazel's server still runs.
    for command_line in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            assert token.encode() not in command_line.read_bytes()


def test_a_malformed_token_is_not_shown(tree: Tree):
    process = tree.setup("develop", TORCH_XLA_LITE_REMOTE_CACHE_READ_TOKEN="se cret")
    assert process.returncode == 1
    assert "TORCH_XLA_LITE_REMOTE_CACHE_READ_TOKEN=... is not a token" in process.stderr
    assert "cret" not in process.stdout + process.stderr.replace("secret", "")


@pytest.mark.parametrize("url", ["http://me:pa55@127.0.0.1:9", "grpc://127.0.0.1:9"])
def test_a_url_with_a_password_or_another_protocol_is_refused_and_not_shown(tree: Tree, url: str):
    process = tree.setup("develop", TORCH_XLA_LITE_REMOTE_CACHE=url)
    assert process.returncode == 1
    assert "is not http:// or https://" in process.stderr
    assert url.partition("//")[2] not in process.stdout + process.stderr


def _check_unused(built: Built, right: Built, reason: str) -> None:
    assert built.ours() == [f"torch_xla_lite: the remote cache is not used: {reason}"]
    assert (built.ran, built.outputs) == (_ALL, right.outputs)


def test_a_server_that_is_down_is_not_used(tree: Tree, right: Built):
    built = tree.build(TORCH_XLA_LITE_REMOTE_CACHE="http://127.0.0.1:9")
    _check_unused(built, right, "Connection refused")


@pytest.mark.nightly
def test_a_server_that_never_answers_is_not_used(tree: Tree, right: Built):
    # The system accepts connections.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        built = tree.build(
            TORCH_XLA_LITE_REMOTE_CACHE=f"http://127.0.0.1:{listener.getsockname()[1]}"
        )
    _check_unused(built, right, "it does not answer within 3 s")


@pytest.mark.nightly
def test_a_wrong_token_reads_nothing(tree: Tree, right: Built, cache: Server):
    variables = {**cache.variables(writes=False), "TORCH_XLA_LITE_REMOTE_CACHE_READ_TOKEN": "wrong"}
    _check_unused(tree.build(**variables), right, "it answers 401 Unauthorized")


@pytest.mark.nightly
def test_run_bazel_is_like_bazel_and_leaves_a_silent_server(tree: Tree, right: Built):
    tree.configure()
    assert tree.run_bazel("build", OUTPUTS).returncode == 0
    process = tree.run_bazel("build", "//:unknown")
    assert process.returncode == tree.bazel("build", "//:unknown").returncode
    url = {"TORCH_XLA_LITE_REMOTE_CACHE": "http://127.0.0.1:9"}
    process = tree.run_bazel("build", "--config=remote-cache", OUTPUTS, **url)
    assert process.returncode == 0
    assert process.stderr.endswith(" the remote cache is not used: Connection refused\n")


@pytest.mark.nightly
@pytest.mark.parametrize("pretends", [False, True])
def test_without_the_write_token_nothing_is_stored(
    tree: Tree, right: Built, cache: Server, pretends: bool
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
    assert built.ours() == ([f"{line}it answers 403 Forbidden"] if pretends else [])
    assert (built.ran, built.outputs) == (_ALL, right.outputs)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(mount, check=False).returncode != 0:
        pytest.skip("only root can mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.nightly
def test_a_full_disk_of_the_disk_cache_is_named_with_its_folder(
    tree: Tree, right: Built, small_disk: Path
):
    with suppress(OSError), (small_disk / "filler").open("wb") as filler:
        while True:
            filler.write(bytes(4096))
    built = tree.build(disk=str(small_disk / "cache"))
    (line,) = built.ours()
    assert f"no space left in {small_disk}/cache. Free some, or delete it:  " in line
    assert (built.ran, built.outputs) == (_ALL, right.outputs)


def _flip(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(bytes([content[0] ^ 1]) + content[1:])


def _empty(file: Path) -> None:
    os.truncate(file, 0)


@pytest.mark.few_daily(1)
@pytest.mark.parametrize(("kind", "damage"), [("cas", _flip), ("ac", _empty)])
def test_damaged_entries_of_the_disk_cache_are_not_used(
    tree: Tree, right: Built, kind: str, damage: Callable[[Path], None], tmp_path: Path
):
    disk = tmp_path / "disk"
    tree.build(disk=str(disk))
    for entry in disk.glob(f"{kind}/*/*"):
        damage(entry)
    built = tree.build(disk=str(disk))
    assert built.ran > 0
    assert built.outputs == right.outputs


@pytest.mark.nightly
def test_results_of_another_compiler_are_misses(
    tree: Tree, right: Built, cache: Server, tmp_path: Path
):
    compiler = tmp_path / "compiler"
    for option, writes, hits in (("-DONE", True, 0), ("-DTWO", False, 0), ("-DONE", False, _ALL)):
        program(compiler, f'exec /usr/bin/g++ {option} "$@"')
        built = tree.build(**cache.variables(writes=writes), CC=str(compiler))
        assert (built.ran, built.hits) == (_ALL - hits, hits)
