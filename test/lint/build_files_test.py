"""BUILD files: they load rules from one place, and no source or test is forgotten."""

import re
from pathlib import Path

import pytest

from test.lint.source_tree import ROOT, files

_BUILD_FILES = files("BUILD.bazel")
_LOAD = re.compile(r'^load\(\s*"([^"]+)"', re.MULTILINE)


@pytest.mark.parametrize("file", _BUILD_FILES, ids=str)
def test_rules_are_loaded_from_defs_bzl_only(file: Path):
    assert set(_LOAD.findall((ROOT / file).read_text())) <= {"//bazel:defs.bzl"}


@pytest.mark.parametrize("file", [f for f in _BUILD_FILES if "csrc" in f.parts], ids=str)
def test_cpp_sources_are_named_one_by_one(file: Path):
    assert "glob(" not in (ROOT / file).read_text()


@pytest.mark.parametrize(
    "file",
    [f for f in files(".h", ".cc", "_test.py") if f.parts[0] in ("test", "torch_xla_lite")],
    ids=str,
)
def test_every_cpp_source_and_every_test_is_named_by_the_build_file_beside_it(file: Path):
    build_file = file.parent / "BUILD.bazel"
    text = (ROOT / build_file).read_text() if (ROOT / build_file).exists() else ""
    # A list of tests that differ in nothing else may name them without the ending.
    if f'"{file.name}"' not in text and f'"{file.stem}"' not in text:
        pytest.fail(f"{build_file} does not name {file.name}", pytrace=False)
