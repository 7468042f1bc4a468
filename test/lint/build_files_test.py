"""Checks BUILD files: they load rules from defs.bzl only, and name every source file."""

import re
from pathlib import Path

import pytest

from scripts.check_granularity import COMPILATIONS, WIDTHS
from test.lint.source_tree import ROOT, files

_BUILD_FILES = files("BUILD.bazel")
_LOAD = re.compile(r'^load\(\s*"([^"]+)"', re.MULTILINE)


@pytest.mark.parametrize("file", _BUILD_FILES, ids=str)
def test_rules_are_loaded_from_defs_bzl_only(file: Path):
    assert set(_LOAD.findall((ROOT / file).read_text())) <= {"//bazel:defs.bzl"}


@pytest.mark.parametrize("file", _BUILD_FILES, ids=str)
def test_no_result_is_kept_out_of_the_caches(file: Path):
    tags = ("external", "local", "no-cache", "no-remote", "no-remote-cache")
    text = (ROOT / file).read_text()
    assert [tag for tag in tags if f'"{tag}"' in text] == []


@pytest.mark.parametrize("file", [f for f in _BUILD_FILES if "csrc" in f.parts], ids=str)
def test_cpp_sources_are_listed_without_globs(file: Path):
    assert "glob(" not in (ROOT / file).read_text()


@pytest.mark.parametrize("name", [*WIDTHS, *COMPILATIONS])
def test_a_file_whose_width_is_limited_exists(name: str):
    assert (ROOT / name.lstrip("/:").replace(":", "/")).is_file()


def _is_built(file: Path) -> bool:
    """Whether Bazel builds or runs the file, so that a target must name it."""
    if file.name == "__init__.py" and not (ROOT / file).read_bytes():
        return False
    return file.parts[0] in ("bazel", "test", "third_party", "torch_xla_lite")


@pytest.mark.parametrize(
    "file", [f for f in files(".cc", ".cu", ".cuh", ".h", ".py") if _is_built(f)], ids=str
)
def test_every_source_is_named_by_the_build_file_beside_it(file: Path):
    build_file = file.parent / "BUILD.bazel"
    text = (ROOT / build_file).read_text() if (ROOT / build_file).exists() else ""
    # Lists in BUILD files may leave the suffix out, or be a pattern.
    accepted = [f'"{file.name}"', f'"{file.stem}"']
    if file.suffix == ".py":
        accepted.append('glob(["*.py"]')
    if file.name == "__init__.py":
        accepted.append("lite_py_modules(")
    if not any(name in text for name in accepted):
        pytest.fail(f"{build_file} does not name {file.name}", pytrace=False)
