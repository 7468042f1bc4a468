"""Builds with bazelisk, and tests the error if it cannot download Bazel."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from test.build import npm
from test.build.nested import Nested
from test.build.tree import ROOT


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


def _chosen(folder: Path, bazelisk: Path, installed: str, **variables: str) -> str:
    """What bootstrap.sh says of the Bazel that it chooses, and the variable that it sets."""
    for name, program in (("bazelisk", bazelisk), ("bazel", Path(installed))):
        (folder / name).symlink_to(program)
    script = 'source scripts/setup_env.sh; find_bazel; choose_bazel; echo "$TORCH_XLA_LITE_BAZEL"'
    environ = {name: text for name, text in os.environ.items() if "BAZEL" not in name}
    return subprocess.run(
        ["bash", "-c", script],
        cwd=ROOT,
        env={**environ, "PATH": f"{folder}:{environ['PATH']}", "HOME": str(folder), **variables},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_bootstrap_takes_bazelisk_if_it_provides_a_bazel(tmp_path: Path, bazelisk: Path):
    installed = npm.bazel_of_bazelisk()
    said = _chosen(tmp_path, bazelisk, installed, USE_BAZEL_VERSION=installed)
    assert said.startswith(f"Bazel: {tmp_path}/bazelisk (it runs bazel ")
    assert said.splitlines()[1:] == [""]


def test_bootstrap_takes_bazel_if_bazelisk_cannot_download(
    tmp_path: Path, bazelisk: Path, closed_port: int
):
    said = _chosen(
        tmp_path,
        bazelisk,
        npm.bazel_of_bazelisk(),
        BAZELISK_BASE_URL=f"http://127.0.0.1:{closed_port}",
    )
    assert said.splitlines() == [
        f"Bazel: {tmp_path}/bazel ({tmp_path}/bazelisk cannot provide its Bazel)",
        f"For later commands:  export TORCH_XLA_LITE_BAZEL={tmp_path}/bazel",
        f"{tmp_path}/bazel",
    ]
