"""Writes a linker script for GNU ld that places functions in a given order.

    python generate.py symbols.txt SCRIPT gcc -shared -fuse-ld=bfd

SCRIPT becomes the script that this link would use by default, with the functions first in .text.
The default depends on the options of the link, so GNU ld is asked for it with the same ones.

The symbols stand one a line, most used first; # begins a comment. They are mangled names without
the suffixes (.isra.0, .constprop.0) that one compiler adds and another does not. A symbol that is
not in the link has no effect.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

# The output section of code, up to the brace after which its contents stand.
_TEXT = re.compile(r"^[ \t]*\.text\s*:\s*\{[^\n]*\n", re.MULTILINE)
_FENCE = "=" * 50 + "\n"
_WITHOUT = "Build without an order of functions:  unset USE_PRIORITIZED_TEXT_FOR_LD"


def read_symbols(text: str) -> list[str]:
    """The names in a file of symbols, each once."""
    names = [line.partition("#")[0].strip() for line in text.splitlines()]
    return list(dict.fromkeys(name for name in names if name))


def insert(script: str, names: list[str]) -> str:
    """A script with the functions first in .text, in their order."""
    lines = []
    for name in names:
        # gcc writes a constructor or destructor of complete objects (C1, D1) as a second name of
        # the one of base objects (C2, D2), in whose section it is.
        for symbol in dict.fromkeys([name, re.sub("([CD])1E", r"\g<1>2E", name)]):
            starts = (f".text.{symbol}", f".text.hot.{symbol}")
            lines += [f"    *({start} {start}.*)\n" for start in starts]
    result, count = _TEXT.subn(lambda match: match[0] + "".join(lines), script)
    if count != 1:
        sys.exit(f"The linker's script has {count} sections .text, and not one.\n{_WITHOUT}")
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
