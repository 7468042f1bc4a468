"""--config=remote-exec: where it is defined, and what an old Bazel says."""

from contextlib import closing
from pathlib import Path

import pytest

from bazel.pybuild.cache import remote_cache
from bazel.pybuild.options import Options
from test.build.nested import Nested


def _options(url: str) -> list[str]:
    """The options that --config=remote-exec stands for, with this remote cache."""
    lines = remote_cache.lines(Options(remote_cache=url))
    return [line.split()[1] for line in lines if line.startswith("build:remote-exec ")]


def test_a_server_that_speaks_grpc_is_the_engine():
    options = _options("grpc://build.example:50051")
    assert "--remote_executor=grpc://build.example:50051" in options
    assert "--config=remote-cache" in options


def test_a_server_that_speaks_http_is_no_engine():
    assert not _options("http://cache.example")


@pytest.mark.nightly
def test_an_old_bazel_says_that_it_cannot_execute_remotely(tmp_path: Path):
    with closing(Nested(tmp_path / "tree", tmp_path)) as tree:
        tree.configure()
        if "--enable_bzlmod" in (tree.root / ".bazelrc.generated").read_text():
            pytest.skip("this Bazel is not an old one")
        said = tree.bazel("build", "--config=remote-exec", "//torch_xla_lite:outputs")
        assert said.returncode
        assert "remote_execution_needs_Bazel_7.7.1" in said.stderr
