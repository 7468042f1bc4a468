"""Reads ELF files: the libraries that a file needs, its exported and its undefined symbols.

    with elf.opened(Path("torch_xla_lite/_XLAC.so")) as file:
        file.needed              # ["libtorch_python.so", "libc10.so", ...]
        file.exports("PyInit__XLAC")

readelf and nm are not used: the build does not depend on them, and looking one name up in
libtorch_cpu.so takes microseconds, while listing its 74,000 names takes a second.
"""

import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_SHT_DYNAMIC, _SHT_DYNSYM, _SHT_GNU_HASH = 6, 11, 0x6FFFFFF6
_DT_NEEDED, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = 1, 14, 15, 29
_STB_GLOBAL, _STB_WEAK, _STB_UNIQUE = 1, 2, 10
_SYMBOL = struct.Struct("<IBBHQQ")
# Linkers define these in every file.
_LINKER_SYMBOLS = {"__bss_start", "_edata", "_end", "_fini", "_init"}


class NotElf(ValueError):
    """The file is not a 64-bit little-endian ELF file, or it is damaged."""


class Symbol(NamedTuple):
    """A dynamic symbol.

    Attributes:
      name: mangled, without a version.
      kind: STT_*, such as 1 for data and 2 for a function.
      weak: whether another definition may replace it; if undefined, whether it may stay undefined.
      size: in bytes.
    """

    name: str
    kind: int
    weak: bool
    size: int


class _Section(NamedTuple):
    kind: int
    offset: int
    size: int
    link: int


class File:
    """An open 64-bit little-endian ELF file; see `opened`."""

    def __init__(self, path: Path, data: mmap.mmap):
        if data[:6] != b"\x7fELF\x02\x01":
            raise NotElf(f"{path} is not a 64-bit little-endian ELF file")
        self._data = data
        (table,) = struct.unpack_from("<Q", data, 0x28)
        entry_size, count = struct.unpack_from("<HH", data, 0x3A)
        self._sections = []
        for i in range(count):
            fields = struct.unpack_from("<IIQQQQIIQQ", data, table + i * entry_size)
            self._sections.append(_Section(fields[1], *fields[4:7]))
        self._dynamic = list(self._read_dynamic())
        self._hash = self._section(_SHT_GNU_HASH)

    @property
    def needed(self) -> list[str]:
        """Names of the libraries that are loaded with this one."""
        return [text for tag, text in self._dynamic if tag == _DT_NEEDED]

    @property
    def soname(self) -> str:
        """The name by which other files refer to this one; empty if it has none."""
        return next((text for tag, text in self._dynamic if tag == _DT_SONAME), "")

    @property
    def search_path(self) -> list[str]:
        """The folders of RPATH and RUNPATH, in which the loader looks for needed libraries."""
        paths = [text for tag, text in self._dynamic if tag in (_DT_RPATH, _DT_RUNPATH)]
        return [folder for path in paths for folder in path.split(":")]

    def exported(self) -> Iterator[Symbol]:
        """The symbols that the file exports."""
        for symbol, defined in self._symbols():
            if defined and symbol.name not in _LINKER_SYMBOLS:
                yield symbol

    def undefined(self) -> Iterator[Symbol]:
        """The symbols that the file imports from others."""
        for symbol, defined in self._symbols():
            if not defined:
                yield symbol

    def exports(self, name: str) -> bool:
        """Whether `exported` has a symbol of this name; uses the loader's hash table."""
        if self._hash is None:
            return any(symbol.name == name for symbol in self.exported())
        start = self._hash.offset
        buckets, first, blooms, _ = struct.unpack_from("<4I", self._data, start)
        table = start + 16 + 8 * blooms
        wanted = _gnu_hash(name)
        (index,) = struct.unpack_from("<I", self._data, table + 4 * (wanted % buckets))
        if index < first:
            return False
        chain = table + 4 * buckets
        symbols = self._sections[self._hash.link]
        names = self._sections[symbols.link].offset
        while True:
            (hashed,) = struct.unpack_from("<I", self._data, chain + 4 * (index - first))
            if hashed | 1 == wanted | 1:
                entry = symbols.offset + _SYMBOL.size * index
                if self._text(names + _SYMBOL.unpack_from(self._data, entry)[0]) == name:
                    return True
            if hashed & 1:
                return False
            index += 1

    def contains(self, text: bytes) -> bool:
        """Whether these bytes occur anywhere in the file."""
        return self._data.find(text) >= 0

    def _section(self, kind: int) -> _Section | None:
        return next((section for section in self._sections if section.kind == kind), None)

    def _text(self, offset: int) -> str:
        return self._data[offset : self._data.find(b"\0", offset)].decode()

    def _read_dynamic(self) -> Iterator[tuple[int, str]]:
        """The entries of the dynamic section whose values are strings."""
        section = self._section(_SHT_DYNAMIC)
        if section is None:
            return
        texts = self._sections[section.link].offset
        content = self._data[section.offset : section.offset + section.size]
        for tag, value in struct.iter_unpack("<QQ", content):
            if tag in (_DT_NEEDED, _DT_SONAME, _DT_RPATH, _DT_RUNPATH):
                yield tag, self._text(texts + value)

    def _symbols(self) -> Iterator[tuple[Symbol, bool]]:
        """Symbols that the loader sees, and whether they are defined in this file."""
        section = self._section(_SHT_DYNSYM)
        if section is None:
            return
        names = self._sections[section.link].offset
        content = self._data[section.offset : section.offset + section.size]
        for name, info, other, index, _, size in _SYMBOL.iter_unpack(content):
            bind, visibility = info >> 4, other & 3
            if bind in (_STB_GLOBAL, _STB_WEAK, _STB_UNIQUE) and visibility in (0, 3):
                symbol = Symbol(self._text(names + name), info & 15, bind == _STB_WEAK, size)
                yield symbol, index != 0


@contextmanager
def opened(path: Path) -> Iterator[File]:
    """Opens an ELF file. Raises NotElf for other files, and OSError if it cannot be read."""
    with path.open("rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            raise NotElf(f"{path} is empty") from None
        with data:
            try:
                opened_file = File(path, data)
            except (struct.error, IndexError):
                raise NotElf(f"{path} is cut short or damaged") from None
            yield opened_file


def exported_symbols(path: Path) -> list[Symbol]:
    """The symbols that a shared object exports."""
    with opened(path) as file:
        return list(file.exported())


def _gnu_hash(name: str) -> int:
    value = 5381
    for byte in name.encode():
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value
