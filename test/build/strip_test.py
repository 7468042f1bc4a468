"""What a stripped library still has."""

import subprocess
from pathlib import Path

import pytest

from bazel.pybuild.dist.strip import strip
from bazel.pybuild.errors import BuildError

_PATH = "torch_xla_lite/lib/libsome.so"
_INFO = "torch_xla_lite/_build_info.py"


def _output(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_library_loses_its_source_and_keeps_what_others_use(tmp_path: Path):
    source, library, info = (tmp_path / name for name in ("some.cc", "libsome.so", "info.py"))
    source.write_text("int first(int n) { return n + 1; }\n")
    _output("g++", "-g", "-shared", "-fPIC", source, "-o", library)
    info.write_text("")
    stripped = strip({_PATH: library, _INFO: info}, tmp_path / "stripped")
    assert " T _Z5firsti" in _output("nm", "--dynamic", stripped[_PATH])
    assert ".symtab" not in _output("readelf", "--sections", "--wide", stripped[_PATH])
    assert b"some.cc" not in stripped[_PATH].read_bytes()
    assert stripped[_INFO] == info


def test_a_file_that_cannot_be_stripped_is_named(tmp_path: Path):
    broken = tmp_path / "libbroken.so"
    broken.write_text("not a library")
    with pytest.raises(BuildError, match=r"objcopy failed: .*libbroken\.so"):
        strip({_PATH: broken}, tmp_path / "stripped")
