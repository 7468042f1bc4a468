"""Builds with bazelisk, and tests the error if it cannot download Bazel."""

import socket
from pathlib import Path

import pytest

from test.build import npm
from test.build.nested import Nested

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def bazelisk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The launcher: of this machine, else fetched by npm."""
    return npm.bazelisk(tmp_path_factory.mktemp("bazelisk"))


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def test_the_message_has_the_reason_and_the_ways_out(
    tmp_path: Path, bazelisk: Path, closed_port: int
):
    tree = Nested(tmp_path, tmp_path)
    process = tree.setup(
        "develop",
        TORCH_XLA_LITE_BAZEL=str(bazelisk),
        BAZELISK_BASE_URL=f"http://127.0.0.1:{closed_port}",
        BAZELISK_HOME=str(tmp_path / "bazelisk"),
    )
    assert process.returncode == 1
    assert "could not provide a Bazel" in process.stderr
    assert "connection refused" in process.stderr
    assert "apt-get install bazel-bootstrap bazel-rules-java bazel-rules-proto" in process.stderr
    assert process.stderr.splitlines()[-1].strip() == (
        "USE_BAZEL_VERSION=/usr/bin/bazel-4 python setup.py develop"
    )
    assert "Traceback" not in process.stderr
    assert not (tree.root / ".bazelrc.generated").exists()
    assert not any(output.exists() for output in tree.outputs)
    assert not list(tree.site.glob("*torch_xla_lite*"))


def test_bazelisk_builds_with_an_installed_bazel(tmp_path: Path, bazelisk: Path, closed_port: int):
    installed = npm.bazel_of_bazelisk()
    tree = Nested(tmp_path, tmp_path)
    settings = {
        "TORCH_XLA_LITE_BAZEL": str(bazelisk),
        "USE_BAZEL_VERSION": installed,
        "BAZELISK_BASE_URL": f"http://127.0.0.1:{closed_port}",
        "BAZELISK_HOME": str(tmp_path / "home-of-bazelisk"),
    }
    try:
        assert tree.develop(**settings)["actions"]["compile"] == 2
        assert tree.develop(**settings)["actions"] == {"compile": 0, "link": 0, "other": 0}
    finally:
        tree.setup("clean", **settings)
        tree.close()
    assert f'"{bazelisk}"' in (tree.root / ".bazelrc.generated.json").read_text()
