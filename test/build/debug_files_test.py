"""What a debugger finds in a stripped library, with its debug file and without."""

import re
import subprocess
from pathlib import Path

import pytest

from bazel.pybuild.dist import debug_files
from bazel.pybuild.errors import BuildError

_PATH = "torch_xla_lite/lib/libsome.so"
_SOURCE = "int other(int);\n\nint first(int n) {\n  return other(n) + 1;\n}\n"


def _output(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def built(tmp_path: Path) -> dict[str, Path]:
    source, library = tmp_path / "some.cc", tmp_path / "libsome.so"
    source.write_text(_SOURCE)
    # As Bazel calls the compiler: no path of a machine gets into the debug information.
    options = [f"-ffile-prefix-map={tmp_path}=csrc", "-Wl,--build-id"]
    _output("g++", "-g", "-shared", "-fPIC", *options, source, "-o", library)
    other = tmp_path / "_build_info.py"
    other.write_text("")
    return {_PATH: library, "torch_xla_lite/_build_info.py": other}


def _place_of_first(library: Path, symbols: Path) -> str:
    """Where the code of first() is from, as far as the library tells."""
    (address,) = re.findall(r"^(\w+) T _Z5firsti$", _output("nm", symbols), re.MULTILINE)
    return _output("addr2line", "--functions", "--exe", library, address)


def test_a_stripped_library_tells_nothing_of_its_source(built: dict[str, Path], tmp_path: Path):
    stripped = debug_files.strip(built, tmp_path / "stripped")[_PATH]
    assert "some.cc" not in _place_of_first(stripped, built[_PATH])
    assert ".symtab" not in _output("readelf", "--sections", "--wide", stripped)
    assert stripped.stat().st_size < built[_PATH].stat().st_size


def test_what_others_use_of_a_library_stays(built: dict[str, Path], tmp_path: Path):
    stripped = debug_files.strip(built, tmp_path / "stripped")[_PATH]
    assert " T _Z5firsti" in _output("nm", "--dynamic", stripped)


def test_with_its_debug_file_beside_it_the_source_line_is_found(
    built: dict[str, Path], tmp_path: Path
):
    folder = tmp_path / "stripped"
    beside = folder / "torch_xla_lite" / "lib"
    stripped = debug_files.strip(built, folder, keep=tmp_path / "dist")[_PATH]
    (tmp_path / "dist" / "libsome.so.debug").rename(beside / "libsome.so.debug")
    place = _place_of_first(stripped, built[_PATH])
    assert re.fullmatch(r"_Z5firsti\n.*csrc/some\.cc:3\n", place)


def test_the_debug_file_itself_tells_the_source_line(built: dict[str, Path], tmp_path: Path):
    debug_files.strip(built, tmp_path / "stripped", keep=tmp_path / "dist")
    place = _place_of_first(tmp_path / "dist" / "libsome.so.debug", built[_PATH])
    assert re.fullmatch(r"_Z5firsti\n.*csrc/some\.cc:3\n", place)


def test_library_and_debug_file_have_one_build_id(built: dict[str, Path], tmp_path: Path):
    stripped = debug_files.strip(built, tmp_path / "stripped", keep=tmp_path / "dist")[_PATH]
    debug = tmp_path / "dist" / "libsome.so.debug"
    notes = [_output("readelf", "--notes", "--wide", file) for file in (stripped, debug)]
    ids = [re.findall(r"Build ID: (\w+)", note) for note in notes]
    assert ids[0] == ids[1]
    assert len(ids[0]) == 1


def test_stripping_gives_the_same_bytes_each_time(built: dict[str, Path], tmp_path: Path):
    first = debug_files.strip(built, tmp_path / "1", keep=tmp_path / "dist")[_PATH].read_bytes()
    again = debug_files.strip(built, tmp_path / "2", keep=tmp_path / "dist")[_PATH].read_bytes()
    assert first == again


def test_what_is_no_shared_object_is_left_alone(built: dict[str, Path], tmp_path: Path):
    name = "torch_xla_lite/_build_info.py"
    assert debug_files.strip(built, tmp_path / "stripped")[name] == built[name]


def test_a_file_that_cannot_be_stripped_is_named(tmp_path: Path):
    broken = tmp_path / "libbroken.so"
    broken.write_text("not a library")
    with pytest.raises(BuildError, match=r"objcopy failed: .*libbroken\.so"):
        debug_files.strip({_PATH: broken}, tmp_path / "stripped")
