"""Reads the addresses of functions in a shared object, with nm and readelf."""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple


class Function(NamedTuple):
    address: int
    name: str


def functions(library: Path, prefix: str = "") -> list[Function]:
    """All functions, sorted by address; aliases have the same address.

    Args:
      library: the file to read.
      prefix: of the tools' names, for the files of another machine.
    """
    lines = _output(f"{prefix}nm", "--numeric-sort", library).splitlines()
    found = [line.split() for line in lines if re.match(r"[0-9a-f]+ [tTwW] ", line)]
    start, end = text_section(library, prefix)
    placed = [Function(int(address, 16), name) for address, _, name in found]
    return [function for function in placed if start <= function.address < end]


def text_section(library: Path, prefix: str = "") -> tuple[int, int]:
    """Addresses of the start and of the end of .text."""
    output = _output(f"{prefix}readelf", "--section-headers", "--wide", library)
    match = re.search(r" \.text +PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+) ", output)
    assert match, output
    start = int(match[1], 16)
    return start, start + int(match[2], 16)


def machine(library: Path) -> str:
    """The machine that a file is for, as readelf calls it."""
    match = re.search(r"Machine: +(\S+)", _output("readelf", "--file-header", library))
    assert match
    return match[1]


def _output(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
