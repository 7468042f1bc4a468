"""A tree that may not be written is copied to build a wheel of it."""

import os
from pathlib import Path

import pytest

from bazel.pybuild.dist import copy


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    for name in ("setup.py", "bazel/x.py", "torch_xla_lite/a.cc", "torch_xla_lite/b.cc"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "bazel" / "source_files.bzl").write_text('ROOT_FILES = ["setup.py"]\n')
    return root


def test_a_tree_that_may_be_written_is_used_itself(tree: Path):
    assert copy.writable(tree, {}) == tree


def test_the_copy_follows_the_tree_and_keeps_what_was_built(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != tree and access(path, mode))
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    made = copy.writable(tree, environ)
    assert made.is_relative_to(tmp_path / "cache")
    (made / "build").mkdir()
    unchanged = (made / "setup.py").stat().st_ino
    (tree / "torch_xla_lite" / "a.cc").write_text("another")
    (tree / "torch_xla_lite" / "b.cc").unlink()
    assert copy.writable(tree, environ) == made
    assert (made / "torch_xla_lite" / "a.cc").read_text() == "another"
    assert not (made / "torch_xla_lite" / "b.cc").exists()
    assert ((made / "setup.py").stat().st_ino, (made / "build").exists()) == (unchanged, True)
