"""Writes a linker script for GNU ld that places functions in a given order.

    python generate.py symbols.txt SCRIPT gcc -shared -fuse-ld=bfd

SCRIPT is the linker's default script with these functions at the start of .text. The default
depends on the options of the link, so GNU ld prints it for the same options.

Each line of the file has one symbol, most used first; # starts a comment. Symbols are mangled names
without suffixes such as .isra.0, which depend on the compiler. A symbol that no object file has is
ignored.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

# The start of the output section for code, up to its opening brace.
_TEXT = re.compile(r"^[ \t]*\.text\s*:\s*\{[^\n]*\n", re.MULTILINE)
_FENCE = "=" * 50 + "\n"
_WITHOUT = "Build without the order of functions:  unset USE_PRIORITIZED_TEXT_FOR_LD"


def read_symbols(text: str) -> list[str]:
    """The names in a file of symbols, without duplicates."""
    names = [line.partition("#")[0].strip() for line in text.splitlines()]
    return list(dict.fromkeys(name for name in names if name))


def insert(script: str, names: list[str]) -> str:
    """The script with these functions at the start of .text."""
    lines = []
    for name in names:
        # For gcc, constructors and destructors of complete objects (C1, D1) are aliases of those of
        # base objects (C2, D2), and the section has the name of the latter.
        for symbol in dict.fromkeys([name, re.sub("([CD])1E", r"\g<1>2E", name)]):
            starts = (f".text.{symbol}", f".text.hot.{symbol}")
            lines += [f"    *({start} {start}.*)\n" for start in starts]
    result, count = _TEXT.subn(lambda match: match[0] + "".join(lines), script)
    if count != 1:
        sys.exit(f"The linker's script has {count} .text sections instead of one.\n{_WITHOUT}")
    return result


def default_script(driver: list[str]) -> str:
    """The script that GNU ld would use for a link with this command."""
    with tempfile.TemporaryDirectory() as folder:
        command = [*driver, "-nostdlib", "-Wl,--verbose", "-o", f"{folder}/nothing"]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
    parts = process.stdout.split(_FENCE)
    if len(parts) != 3:
        output = process.stderr or process.stdout
        sys.exit(f"{' '.join(driver)} printed no script of GNU ld:\n{output}\n{_WITHOUT}")
    return parts[1]


if __name__ == "__main__":
    SYMBOLS, SCRIPT, *DRIVER = sys.argv[1:]
    NAMES = read_symbols(Path(SYMBOLS).read_text(encoding="utf-8"))
    Path(SCRIPT).write_text(insert(default_script(DRIVER), NAMES), encoding="utf-8")
