"""The part of a cache key that stands for compiler, C library and linker."""

import os
from pathlib import Path

import pytest

from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import toolchain


def _compiler(folder: Path, version: str) -> dict[str, str]:
    folder.mkdir()
    program = folder / "cc"
    program.write_text(f"#!/bin/sh\necho 'cc version {version}' >&2\n")
    program.chmod(0o755)
    return {**os.environ, "CC": str(program)}


def _cross_compiler(folder: Path, version: str) -> dict[str, str]:
    folder.mkdir()
    for name in ("aarch64-linux-gnu-g++", "aarch64-linux-gnu-ld"):
        (folder / name).write_text(f"#!/bin/sh\necho '{name} {version}' >&2\n")
        (folder / name).chmod(0o755)
    return {"PATH": str(folder)}


def test_the_same_toolchain_has_the_same_fingerprint():
    assert toolchain.fingerprint(os.environ) == toolchain.fingerprint(os.environ)


def test_another_compiler_has_another_fingerprint(tmp_path: Path):
    old, new = _compiler(tmp_path / "old", "12.2"), _compiler(tmp_path / "new", "12.3")
    assert toolchain.fingerprint(old) != toolchain.fingerprint(new)


@pytest.mark.parametrize(("script", "reason"), [(None, "No such file"), ("exit 3", "exits with 3")])
def test_a_compiler_that_cannot_be_run_has_none(tmp_path: Path, script: str | None, reason: str):
    program = tmp_path / "cc"
    if script is not None:
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    with pytest.raises(BuildError, match=f"{program}.*{reason}"):
        toolchain.fingerprint({**os.environ, "CC": str(program)})


def test_the_place_of_a_compiler_makes_no_difference(tmp_path: Path):
    here, there = _compiler(tmp_path / "here", "12.2"), _compiler(tmp_path / "there", "12.2")
    assert toolchain.fingerprint(here) == toolchain.fingerprint(there)


def test_the_compiler_is_among_the_files_that_are_watched(tmp_path: Path):
    environ = _compiler(tmp_path / "mine", "12.2")
    assert Path(environ["CC"]) in toolchain.files(environ)


def test_a_missing_cross_compiler_has_no_fingerprint(tmp_path: Path):
    assert toolchain.cross_fingerprint({"PATH": str(tmp_path)}) == "none"


def test_another_cross_compiler_has_another_fingerprint(tmp_path: Path):
    old, new = _cross_compiler(tmp_path / "old", "12"), _cross_compiler(tmp_path / "new", "13")
    assert "none" != toolchain.cross_fingerprint(old) != toolchain.cross_fingerprint(new)


def test_what_is_built_for_this_machine_does_not_depend_on_the_cross_compiler(tmp_path: Path):
    # Nor is it compiled again when one is installed.
    old, new = _cross_compiler(tmp_path / "old", "12"), _cross_compiler(tmp_path / "new", "13")
    assert toolchain.fingerprint(old) == toolchain.fingerprint(new)
