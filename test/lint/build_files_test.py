"""BUILD files: they load rules from defs.bzl only, name every source file, and are complete."""

import re
from pathlib import Path

import pytest

from scripts import python_deps
from test.lint.source_tree import ROOT, files

_BUILD_FILES = files("BUILD.bazel")
_LOAD = re.compile(r'^load\(\s*"([^"]+)"', re.MULTILINE)
_OUT_OF_CACHES = ("external", "local", "no-cache", "no-remote", "no-remote-cache")


def _text(file: Path) -> str:
    return (ROOT / file).read_text(encoding="utf-8") if (ROOT / file).exists() else ""


def test_rules_are_loaded_from_defs_bzl_only():
    generated = {f"//{path.parent}:python_deps.bzl" for path in files("python_deps.bzl")}
    loaded = {(str(file), place) for file in _BUILD_FILES for place in _LOAD.findall(_text(file))}
    assert [each for each in loaded if each[1] not in {"//bazel:defs.bzl", *generated}] == []


def test_no_result_is_kept_out_of_the_caches():
    tags = [(str(file), tag) for file in _BUILD_FILES for tag in _OUT_OF_CACHES]
    assert [(file, tag) for file, tag in tags if f'"{tag}"' in _text(Path(file))] == []


def test_cpp_sources_are_listed_without_globs():
    in_csrc = [file for file in _BUILD_FILES if "csrc" in file.parts]
    assert [str(file) for file in in_csrc if "glob(" in _text(file)] == []


def test_generated_lists_are_current():
    if outdated := python_deps.outdated(ROOT):
        remedy = "Write them again:  python scripts/python_deps.py"
        pytest.fail(f"Out of date: {', '.join(outdated)}\n{remedy}", pytrace=False)


def test_every_source_is_named_by_the_build_file_beside_it():
    # What pip or another workspace builds is named there.
    elsewhere = ("test/extension/example", "test/extension/workspace")
    missing = []
    for file in files(".cc", ".cu", ".cuh", ".h", ".py"):
        if len(file.parts) == 1 or any(map(file.is_relative_to, elsewhere)):
            continue
        # All Python files of a folder become targets at once; lists of others may have no suffix.
        python = file.suffix == ".py"
        names = ["lite_py_files("] if python else [f'"{file.name}"', f'"{file.stem}"']
        if not any(name in _text(file.parent / "BUILD.bazel") for name in names):
            missing.append(str(file))
    assert missing == []
