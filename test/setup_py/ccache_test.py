"""A compiler behind ccache, as docs/build.md describes it: a small tree, Bazel and ccache."""

import shutil
import subprocess
from pathlib import Path

import pytest

from bazel.pybuild.why import execution_log
from test.build.nested import Nested

_CCACHE = shutil.which("ccache")


def _hits(store: Path) -> int:
    """How many results of a store had the same preprocessed text as a file that was compiled."""
    command = [str(_CCACHE), "--print-stats"]
    process = subprocess.run(
        command, env={"CCACHE_DIR": str(store)}, capture_output=True, text=True, check=True
    )
    counts = dict(line.split("\t") for line in process.stdout.splitlines())
    return int(counts["preprocessed_cache_hit"])


def _ran(tree: Nested) -> list[str]:
    """The kinds of the last build's actions."""
    log = execution_log.read(tree.root / execution_log.FILE)
    return [spawn.mnemonic for spawn in log if not spawn.hit]


@pytest.mark.nightly
@pytest.mark.skipif(_CCACHE is None, reason="needs ccache; scripts/test.sh installs it")
def test_a_comment_that_keeps_all_line_numbers_is_not_compiled_again(
    nested: Nested, tmp_path: Path
):
    nested.must("clean")
    (tmp_path / "gcc").symlink_to(str(_CCACHE))
    store = tmp_path / "store"
    options = ["--disk_cache=", f"--action_env=CCACHE_DIR={store}"]
    nested.build(*options, CC=str(tmp_path / "gcc"))
    assert _ran(nested).count("CppCompile") == 2
    assert _hits(store) == 0
    nested.write("one.cc", "int one() { return 1; }  // A comment.\n")
    nested.build(*options, CC=str(tmp_path / "gcc"))
    assert _ran(nested) == ["CppCompile"]
    assert _hits(store) == 1
