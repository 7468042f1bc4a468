"""Writes the exported symbols of a shared object as an assembler file, to link against.

    python interface.py /path/to/libc10.so c10.S words.txt
    python interface.py --interpreter python.S

Assembled and linked, the file becomes an interface library: a small shared object that has the
symbols of the original and none of its code. With a list of the words in some headers, it has only
symbols that these may declare: 12,000 of the 74,000 of libtorch_cpu.so, which each link reads.
"""

import re
import sys
import sysconfig
from collections.abc import Iterator, Set
from pathlib import Path

# A repository rule runs this file without the root of the tree on sys.path.
sys.path.insert(0, str(Path(__file__).absolute().parents[1]))

from third_party import elf

_STT_OBJECT, _STT_TLS = 1, 6
# What stands before the names of scopes in a mangled name: that it is a vtable, a guard or a nested
# name, offsets of thunks, qualifiers, `std`.
_BEFORE_SCOPES = re.compile(r"_Z(?:GV)?(?:Z|T[A-Za-z](?:n?\d+_)*)?N?[KVrRO]*(?:St)?")
_LENGTH = re.compile(r"\d+")


def assembler(symbols: list[elf.Symbol]) -> Iterator[str]:
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


def scopes(symbol: str) -> list[str]:
    """The namespaces and classes of a C++ symbol and its own name, up to the first operator,
    constructor or template argument; the whole name of a C symbol."""
    start = _BEFORE_SCOPES.match(symbol)
    if start is None:
        return [symbol]
    names, position = [], start.end()
    while length := _LENGTH.match(symbol, position):
        position = length.end() + int(length[0])
        names.append(symbol[length.end() : position])
    return names


def declared(symbols: list[elf.Symbol], words: Set[str]) -> list[elf.Symbol]:
    """The symbols that headers with these words may declare."""
    return [symbol for symbol in symbols if words.issuperset(scopes(symbol.name))]


def interpreter_binary() -> Path:
    """The file that exports Python's C API: the interpreter, or the libpython that it links to.

    The files are read to find out, because Debian's interpreter exports the API although its
    configuration names a shared library.
    """
    folder, multiarch, name = sysconfig.get_config_vars("LIBDIR", "MULTIARCH", "INSTSONAME")
    candidates = [Path(sys.executable).resolve()]
    if folder and name:
        candidates += [Path(folder) / name, Path(folder) / (multiarch or "") / name]
    for candidate in candidates:
        if candidate.is_file():
            with elf.opened(candidate) as file:
                if file.exports("Py_IsInitialized"):
                    return candidate
    raise SystemExit(f"none of these exports Python's C API: {', '.join(map(str, candidates))}")


def main(source: str, target: str, words: str = "") -> None:
    path = interpreter_binary() if source == "--interpreter" else Path(source)
    # A symbol may exist in several versions.
    try:
        named = {symbol.name: symbol for symbol in elf.exported_symbols(path)}
    except elf.NotElf as error:
        sys.exit(str(error))
    symbols = list(named.values())
    if words:
        symbols = declared(symbols, set(Path(words).read_text().split()))
    Path(target).write_text("\n".join(assembler(symbols)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
