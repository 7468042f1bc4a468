"""Execution logs of Bazel 4.2.3 and 7.7.1, of the same targets.

Four C++ actions, a module with the versions, and a test in whose place /bin/true ran.
"""

from pathlib import Path

import pytest

from bazel.pybuild.why import execution_log
from bazel.pybuild.why.execution_log import Spawn
from test.build import logs

_SHAPE = "_objs/shape/shape.pic.o"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "execution.bin"


def _read(log: Path, version: str) -> list[Spawn]:
    logs.unpack(version, "spawns", log)
    return list(execution_log.read(log))


def _named(spawns: list[Spawn], output: str) -> Spawn:
    (found,) = [spawn for spawn in spawns if spawn.outputs[-1].endswith(output)]
    return found


@pytest.mark.parametrize("version", ["4.2.3", "7.7.1"])
def test_a_compilation_has_its_arguments_variables_properties_and_inputs(log: Path, version: str):
    spawn = _named(_read(log, version), _SHAPE)
    assert spawn.mnemonic == "CppCompile"
    assert "-std=c++20" in spawn.arguments
    assert spawn.variables["PWD"] == "/proc/self/cwd"
    assert list(spawn.properties) == ["toolchain"]
    assert len(spawn.inputs["torch_xla_lite/csrc/ir/shape.h"]) == 64
    assert spawn.outputs[-1] in spawn.products
    assert (spawn.hit, spawn.runner) == (False, "local")


def test_an_archive_has_the_same_mnemonic_in_both_versions(log: Path):
    assert [
        _named(_read(log, version), "libsignature.a").mnemonic for version in ("4.2.3", "7.7.1")
    ] == ["CppArchive", "CppArchive"]


@pytest.mark.parametrize("part", range(1, 100, 7))
def test_a_log_that_a_killed_bazel_left_is_read_as_far_as_it_goes(log: Path, part: int):
    whole = _read(log, "7.7.1")
    log.write_bytes(log.read_bytes()[: log.stat().st_size * part // 100])
    read = list(execution_log.read(log))
    assert read == whole[: len(read)]
    assert len(read) < len(whole)


def test_a_link_and_a_failure_are_read(log: Path):
    link = {"path": "a", "symlinkTargetPath": "b"}
    logs.write(log, [{"mnemonic": "X", "inputs": [link], "listedOutputs": ["o"], "exitCode": 1}])
    (spawn,) = execution_log.read(log)
    assert spawn.inputs == {"a": "-> b"}
    assert spawn.failed


def test_a_missing_log_is_empty(log: Path):
    assert list(execution_log.read(log)) == []


def test_a_file_that_is_no_log_has_no_spawns(log: Path):
    log.write_text("[1, 2]")
    assert list(execution_log.read(log)) == []
