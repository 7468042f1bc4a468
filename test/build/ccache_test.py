"""A compiler behind ccache, as docs/build.md describes it: a small tree, Bazel and ccache."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

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


@pytest.mark.skipif(_CCACHE is None, reason="needs ccache; scripts/test.sh installs it")
def test_a_comment_that_keeps_all_line_numbers_is_not_compiled_again(tmp_path: Path):
    tree = Nested(tmp_path, tmp_path / "shared")
    (tmp_path / "gcc").symlink_to(str(_CCACHE))
    store = tmp_path / "store"
    variables = {
        "CC": str(tmp_path / "gcc"),
        "TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS": f"--disk_cache= --action_env=CCACHE_DIR={store}",
    }
    try:
        assert tree.develop(**variables)["actions"]["compile"] == 2
        assert _hits(store) == 0
        tree.write("one.cc", "int one() { return 1; }  // A comment.\n")
        report = tree.develop(**variables)
    finally:
        tree.close()
    assert report["actions"] == {"compile": 1, "link": 0, "other": 0}, json.dumps(report)
    assert _hits(store) == 1
