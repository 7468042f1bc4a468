"""Writes what makes a linker place functions in a given order.

    python generate.py symbols.txt OPTIONS SCRIPT -- gcc -shared -fuse-ld=gold

OPTIONS becomes a file of options for the compiler driver that links (`gcc @OPTIONS ...`), SCRIPT
the file that they name. The words after -- are the driver and its options, without inputs: the
linker that they choose is asked what it is, and GNU ld for the script that it would use. That
script differs with the options, so it is asked with the same ones.

The symbols stand one a line, hottest first; # begins a comment. They are mangled names without the
suffixes (.isra.0, .constprop.0) that one compiler gives and another does not. A name that is not in
what is linked does no harm.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9_$]+")
# The output section of code in a script of GNU ld, up to the brace after which its contents stand.
_TEXT = re.compile(r"^[ \t]*\.text\s*:\s*\{[^\n]*\n", re.MULTILINE)
_COMPLETE_OBJECT = re.compile("([CD])1E")
_FENCE = "=" * 50 + "\n"
_WITHOUT = "\nBuild without an order of functions:  unset USE_PRIORITIZED_TEXT_FOR_LD"


def read_symbols(text: str) -> list[str]:
    """The names in a file of symbols, each once."""
    names = [line.partition("#")[0].strip() for line in text.splitlines()]
    names = list(dict.fromkeys(name for name in names if name))
    for name in names:
        if not _NAME.fullmatch(name):
            raise SystemExit(f"{name!r} is not the mangled name of a function.")
    return names


def linker_kind(said: str) -> str:
    """Which linker it is, from what it says to --version: gnu, gold, lld or mold."""
    for kind, name in (("gold", "GNU gold"), ("lld", "LLD"), ("mold", "mold"), ("gnu", "GNU ld")):
        if re.search(rf"\b{name}\b", said):
            return kind
    raise SystemExit(f"No linker that is known here says this of itself:\n{said}{_WITHOUT}")


def _sections(name: str) -> list[str]:
    """Patterns of the sections that a compiler puts the function into."""
    # gcc writes constructors and destructors of complete objects (C1, D1) as other names of those
    # of base objects, in whose section they are.
    names = dict.fromkeys([name, _COMPLETE_OBJECT.sub(r"\g<1>2E", name)])
    starts = [f".text.{part}{each}" for each in names for part in ("", "hot.")]
    return [pattern for start in starts for pattern in (start, f"{start}.*")]


def insert(script: str, names: list[str]) -> str:
    """A script of GNU ld with the functions first in .text, in their order."""
    found = _TEXT.findall(script)
    if len(found) != 1:
        problem = f"The linker's script has {len(found)} sections .text, and not one."
        raise SystemExit(problem + _WITHOUT)
    # One statement a function: within one, the linker keeps the order of its inputs.
    lines = [f"    *({' '.join(_sections(name))})\n" for name in names]
    return _TEXT.sub(lambda match: match[0] + "".join(lines), script)


def default_script(driver: list[str]) -> str:
    """The script that GNU ld would use for a link with these options."""
    with tempfile.TemporaryDirectory() as folder:
        said = _output([*driver, "-nostdlib", "-Wl,--verbose", "-o", f"{folder}/nothing"])
    parts = said.split(_FENCE)
    if len(parts) != 3:
        problem = f"{' '.join(driver)} -Wl,--verbose printed no linker script:\n{said}"
        raise SystemExit(problem + _WITHOUT)
    return parts[1]


def ordering(driver: list[str], names: list[str], script: str) -> tuple[str, list[str]]:
    """What the linker of this driver wants.

    Args:
      driver: command that links, without inputs.
      names: of the functions.
      script: name of the file that the first result will be written to.

    Returns:
      The content of that file, and options for the driver.
    """
    kind = linker_kind(_output([*driver, "-Wl,--version"]))
    if kind == "gnu":
        return insert(default_script(driver), names), [f"-Wl,-T,{script}"]
    if kind == "gold":
        lines = [
            f".text.{prefix}{n}{end}"
            for n in names
            for prefix in ("", "hot.")
            for end in ("", ".*")
        ]
        return "".join(f"{line}\n" for line in lines), [f"-Wl,--section-ordering-file,{script}"]
    if kind == "lld":
        # Most names are not in most libraries.
        options = [f"-Wl,--symbol-ordering-file,{script}", "-Wl,--no-warn-symbol-ordering"]
        return "".join(f"{name}\n" for name in names), options
    raise SystemExit(
        "The linker is mold, which takes no order of functions.\n"
        "Link with another one:  --linkopt=-fuse-ld=bfd, in TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS"
    )


def _output(command: list[str]) -> str:
    process = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{process.stderr}")
    return process.stdout


def _write(path: Path, content: str) -> None:
    """Writes a file that is whole whenever it is there."""
    replacement = path.with_name(path.name + ".new")
    replacement.write_text(content)
    replacement.replace(path)


def main(arguments: list[str]) -> None:
    symbols, options, script, dashes, *driver = arguments
    assert dashes == "--" and driver
    names = read_symbols(Path(symbols).read_text(encoding="utf-8"))
    content, words = ordering(driver, names, script)
    _write(Path(script), content)
    _write(Path(options), "".join(f"{word}\n" for word in words))


if __name__ == "__main__":
    main(sys.argv[1:])
