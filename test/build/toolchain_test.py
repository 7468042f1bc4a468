"""The part of a cache key that stands for compiler, C library and linker."""

import os
from pathlib import Path

from bazel.pybuild import toolchain


def _compiler(folder: Path, version: str) -> dict[str, str]:
    folder.mkdir()
    program = folder / "cc"
    program.write_text(f"#!/bin/sh\necho 'cc version {version}' >&2\n")
    program.chmod(0o755)
    return {**os.environ, "CC": str(program)}


def test_the_same_toolchain_has_the_same_silo():
    assert toolchain.silo(os.environ) == toolchain.silo(os.environ)


def test_another_compiler_has_another_silo(tmp_path: Path):
    old, new = _compiler(tmp_path / "old", "12.2"), _compiler(tmp_path / "new", "12.3")
    assert toolchain.silo(old) != toolchain.silo(new)


def test_the_place_of_a_compiler_makes_no_difference(tmp_path: Path):
    here, there = _compiler(tmp_path / "here", "12.2"), _compiler(tmp_path / "there", "12.2")
    assert toolchain.silo(here) == toolchain.silo(there)


def test_the_compiler_is_among_the_files_that_are_watched(tmp_path: Path):
    environ = _compiler(tmp_path / "mine", "12.2")
    assert Path(environ["CC"]) in toolchain.files(environ)
