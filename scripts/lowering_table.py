#!/usr/bin/env python3
"""Writes torch_xla_lite/lowering/table.py: which module has the lowering of each op.

    python scripts/lowering_table.py             # after a change of an `@lower` decorator
    python scripts/lowering_table.py --check     # writes nothing; exit code 1 if it is out of date

With the table, the package imports a module when one of its ops is first lowered.
"""

import argparse
import importlib
import json
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_PACKAGE = "torch_xla_lite.lowering"
_HEAD = '''\
"""Which module has the lowering of each op. Written by scripts/lowering_table.py.

MODULES: module -> its ops.
CONSTANTS: ops whose scalars are constants of the graph.
RUNTIME_FLOATS: op -> arguments of type `float` that arrive at run time.
"""
'''


def text() -> str:
    """What the table should contain."""
    from torch_xla_lite.lowering import registry

    # What the old table says is of no interest here.
    registry.check_declared = lambda name, entry: None
    for file in sorted(Path(registry.__file__).parent.glob("*.py")):
        if file.stem != "__init__":
            importlib.import_module(f"{_PACKAGE}.{file.stem}")
    # Others are registered by the files that define their ops.
    entries = {
        op: entry
        for op, entry in sorted(registry.LOWERINGS.items())
        if entry.fn.__module__.startswith(f"{_PACKAGE}.")
    }
    modules: dict[str, list[str]] = {}
    for op, entry in entries.items():
        modules.setdefault(entry.fn.__module__.removeprefix(f"{_PACKAGE}."), []).append(op)
    lines = [_HEAD, "MODULES: dict[str, str] = {"]
    for module in sorted(modules):
        lines += [f'    "{module}": """', _wrapped(modules[module], 8), '    """,']
    constants = [op for op, entry in entries.items() if entry.constants]
    lines += ["}", 'CONSTANTS = """', _wrapped(constants, 4), '"""']
    lines += ["RUNTIME_FLOATS: dict[str, list[str]] = {"]
    for op, entry in entries.items():
        if entry.runtime_floats:
            lines.append(f'    "{op}": {json.dumps(sorted(entry.runtime_floats))},')
    return "\n".join([*lines, "}"]) + "\n"


def _wrapped(names: list[str], indent: int) -> str:
    margin = " " * indent
    return textwrap.fill(
        " ".join(names),
        100,
        initial_indent=margin,
        subsequent_indent=margin,
        break_long_words=False,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    check = parser.parse_args().check
    sys.path.insert(0, str(ROOT))
    table, wanted = ROOT / "torch_xla_lite" / "lowering" / "table.py", text()
    if table.read_text(encoding="utf-8") == wanted:
        return 0
    if check:
        print(f"{table} is out of date.\nWrite it again:  python scripts/lowering_table.py")
        return 1
    table.write_text(wanted, encoding="utf-8")
    print(f"{table} has changed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
