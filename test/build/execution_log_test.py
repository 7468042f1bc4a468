"""Execution logs of Bazel 4.2.3 and 7.7.1, of the same targets.

Four C++ actions, a module with the versions, and a test in whose place /bin/true ran.
"""

import base64
import json
import sys
from pathlib import Path

import pytest

from bazel.pybuild.invocation import execution_log
from bazel.pybuild.invocation.execution_log import Spawn

_RECORDED = Path(__file__).parent / "testdata"
_COMPACT = base64.decodebytes((_RECORDED / "bazel-7.7.1/spawns.compact.txt").read_bytes())
_SHAPE = "_objs/shape/shape.pic.o"


@pytest.fixture
def compact(tmp_path: Path) -> Path:
    file = tmp_path / "execution.bin"
    file.write_bytes(_COMPACT)
    return file


def _json(version: str) -> list[Spawn]:
    return list(execution_log.read(_RECORDED / f"bazel-{version}" / "spawns.json"))


def _named(spawns: list[Spawn], output: str) -> Spawn:
    (found,) = [spawn for spawn in spawns if spawn.outputs[-1].endswith(output)]
    return found


def test_the_compact_log_says_the_same_as_json(compact: Path):
    def identity(spawn: Spawn) -> tuple[str, tuple[str, ...]]:
        return spawn.mnemonic, spawn.outputs

    # The runfiles of the test have other paths in the two.
    of_json = sorted(_json("7.7.1"), key=identity)
    of_messages = sorted(execution_log.read(compact), key=identity)
    for one, other in zip(of_json, of_messages, strict=True):
        if any(".runfiles/" in path for path in one.inputs):
            assert set(one.inputs.values()) == set(other.inputs.values())
            other = other._replace(inputs=one.inputs)
        assert one == other


@pytest.mark.parametrize("version", ["4.2.3", "7.7.1"])
def test_a_compilation_has_its_arguments_variables_properties_and_inputs(version: str):
    spawn = _named(_json(version), _SHAPE)
    assert spawn.mnemonic == "CppCompile"
    assert "-std=c++20" in spawn.arguments
    assert spawn.variables["PWD"] == "/proc/self/cwd"
    assert list(spawn.properties) == ["toolchain"]
    assert len(spawn.inputs["torch_xla_lite/csrc/ir/shape.h"]) == 64
    assert spawn.outputs[-1] in spawn.products
    assert (spawn.cacheable, spawn.hit, spawn.runner) == (True, False, "local")


def test_an_archive_has_the_same_mnemonic_in_both_versions():
    assert [
        _named(_json(version), "libsignature.a").mnemonic for version in ("4.2.3", "7.7.1")
    ] == ["CppArchive", "CppArchive"]


def test_only_bazel_7_logs_targets_and_keys(compact: Path):
    old, new = _named(_json("4.2.3"), _SHAPE), _named(list(execution_log.read(compact)), _SHAPE)
    assert (old.target, old.key) == ("", "")
    assert new.target == "//torch_xla_lite/csrc/ir:shape"
    assert len(new.key) == 64


@pytest.mark.parametrize("length", range(1, len(_COMPACT), 97))
def test_a_log_that_a_killed_bazel_left_is_read_as_far_as_it_goes(compact: Path, length: int):
    whole = list(execution_log.read(compact))
    compact.write_bytes(_COMPACT[:length])
    read = list(execution_log.read(compact))
    assert read == whole[: len(read)]


def test_half_of_a_json_log_is_read(tmp_path: Path):
    text = (_RECORDED / "bazel-7.7.1/spawns.json").read_text()
    (tmp_path / "half.json").write_text(text[: len(text) // 2])
    read = list(execution_log.read(tmp_path / "half.json"))
    assert 0 < len(read) < len(_json("7.7.1"))
    assert read == _json("7.7.1")[: len(read)]


def test_a_missing_log_is_empty(tmp_path: Path):
    assert list(execution_log.read(tmp_path / "none")) == []


def test_without_the_package_that_decompresses_the_error_names_the_command(
    compact: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(execution_log.MissingPackage, match=f"{sys.executable} -m pip install zst"):
        list(execution_log.read(compact))


def test_a_file_that_is_no_log_has_no_spawns(tmp_path: Path):
    (tmp_path / "text").write_text(json.dumps([1, 2]))
    assert list(execution_log.read(tmp_path / "text")) == []
