"""The reader of ELF files, against readelf and the linker."""

import subprocess
from pathlib import Path

import pytest

from third_party import elf

_SOURCE = "".join(f"int name_{i}() {{ return {i}; }}\n" for i in range(200)) + (
    "int other(), puts(); int calls() { return other() + puts(); }\n"
)


@pytest.fixture(params=["gnu", "sysv"])
def library(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A library with one of the two kinds of tables of names."""
    (tmp_path / "some.c").write_text(_SOURCE)
    file = tmp_path / "libsome.so"
    options = ["-shared", "-fPIC", f"-Wl,--hash-style={request.param}", "-Wl,-soname,libsome.so.1"]
    subprocess.run(["gcc", *options, tmp_path / "some.c", "-o", file], check=True)
    return file


def test_every_name_that_is_offered_is_found(library: Path):
    with elf.opened(library) as file:
        names = {symbol.name for symbol in file.exported()}
        assert {name for name in names if file.exports(name)} == names
        assert len(names) == 201


def test_a_name_that_is_not_offered_is_not_found(library: Path):
    with elf.opened(library) as file:
        assert not file.exports("other")
        assert not file.exports("name_200")


def test_what_is_taken_from_others_is_undefined(library: Path):
    with elf.opened(library) as file:
        assert "other" in {symbol.name for symbol in file.undefined() if not symbol.weak}


def test_the_dynamic_section_is_read(library: Path):
    with elf.opened(library) as file:
        assert file.soname == "libsome.so.1"
        assert file.needed == ["libc.so.6"]
        assert file.search_path == []


@pytest.mark.parametrize("content", [b"", b"INPUT(-lsome)", b"\x7fELF\x01\x01" + b"\0" * 64])
def test_another_file_is_refused(tmp_path: Path, content: bytes):
    file = tmp_path / "libother.so"
    file.write_bytes(content)
    with pytest.raises(elf.NotElf, match=r"libother\.so is "), elf.opened(file):
        pass


@pytest.mark.parametrize("size", [20, 200])
def test_a_file_that_was_cut_short_is_refused(tmp_path: Path, library: Path, size: int):
    file = tmp_path / "libcut.so"
    file.write_bytes(library.read_bytes()[:size])
    with pytest.raises(elf.NotElf, match=r"libcut\.so is cut short"), elf.opened(file):
        pass
