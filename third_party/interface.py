"""Writes the symbols that a shared object offers as an assembler file.

    python interface.py /path/to/libc10.so c10.S
    python interface.py --interpreter python.S

Assembled and linked, the file gives a shared object that has the symbols of the original but none
of its code: a small thing to link against. Reads the ELF file itself, so that no other tool is
needed.
"""

import mmap
import struct
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_SHT_DYNSYM = 11
_STB_GLOBAL, _STB_WEAK, _STB_UNIQUE = 1, 2, 10
_STT_OBJECT, _STT_TLS = 1, 6
# Every linker defines these in every file it makes.
_LINKERS_OWN = {"__bss_start", "_edata", "_end", "_fini", "_init"}


class Symbol(NamedTuple):
    name: str
    kind: int  # STT_*
    weak: bool
    size: int


def exported_symbols(path: Path) -> Iterator[Symbol]:
    """The defined dynamic symbols of a 64-bit little-endian ELF file."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:6] != b"\x7fELF\x02\x01":
            raise SystemExit(f"{path} is no 64-bit little-endian ELF file")
        (section_offset,) = struct.unpack_from("<Q", data, 0x28)
        entry_size, count = struct.unpack_from("<HH", data, 0x3A)
        sections = [
            struct.unpack_from("<IIQQQQIIQQ", data, section_offset + i * entry_size)
            for i in range(count)
        ]
        for _, kind, _, _, offset, size, link, _, _, _ in sections:
            if kind != _SHT_DYNSYM:
                continue
            names_offset, names_size = sections[link][4:6]
            names = data[names_offset : names_offset + names_size]
            for name, info, other, index, _, length in struct.iter_unpack(
                "<IBBHQQ", data[offset : offset + size]
            ):
                bind, visibility = info >> 4, other & 3
                exported = bind in (_STB_GLOBAL, _STB_WEAK, _STB_UNIQUE) and visibility in (0, 3)
                if index != 0 and exported:
                    text = names[name : names.index(b"\0", name)].decode()
                    if text not in _LINKERS_OWN:
                        yield Symbol(text, info & 15, bind == _STB_WEAK, length)


def assembler(symbols: list[Symbol]) -> Iterator[str]:
    """Definitions of the symbols: functions as labels, data with their sizes."""
    sections = [
        (".text", "%function", lambda s: s.kind not in (_STT_OBJECT, _STT_TLS)),
        ('.section .bss,"aw",%nobits', "%object", lambda s: s.kind == _STT_OBJECT),
        ('.section .tbss,"awT",%nobits', "%tls_object", lambda s: s.kind == _STT_TLS),
    ]
    for section, kind, belongs in sections:
        yield section
        for symbol in sorted(filter(belongs, symbols)):
            yield f".{'weak' if symbol.weak else 'globl'} {symbol.name}"
            yield f".type {symbol.name},{kind}"
            if kind != "%function":
                yield f".size {symbol.name},{symbol.size}"
            yield f"{symbol.name}:"
    yield '.section .note.GNU-stack,"",%progbits'


def interpreter_binary() -> Path:
    """The file that offers Python's C API: the interpreter, or the libpython that it is linked to.

    Debian's interpreter has the API although its settings tell of a shared library, so look.
    """
    folder, multiarch, name = sysconfig.get_config_vars("LIBDIR", "MULTIARCH", "INSTSONAME")
    candidates = [Path(sys.executable).resolve()]
    if folder and name:
        candidates += [Path(folder) / name, Path(folder) / (multiarch or "") / name]
    for candidate in candidates:
        if candidate.is_file() and any(
            s.name == "Py_IsInitialized" for s in exported_symbols(candidate)
        ):
            return candidate
    raise SystemExit(f"none of these offers Python's C API: {', '.join(map(str, candidates))}")


def main(source: str, target: str) -> None:
    path = interpreter_binary() if source == "--interpreter" else Path(source)
    # A name may be there in several versions.
    symbols = {symbol.name: symbol for symbol in exported_symbols(path)}
    Path(target).write_text("\n".join(assembler(list(symbols.values()))) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
