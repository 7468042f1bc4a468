#!/usr/bin/env python3
"""Writes what the decorators of lowerings say into two tables.

    python scripts/lowering_table.py             # after a change of an `@lower` decorator
    python scripts/lowering_table.py --check     # writes nothing; exit code 1 if one is out of date

torch_xla_lite/lowering/base/table.py says which module has the lowering of each op: the package
imports a module when one of its ops is first lowered. torch_xla_lite/csrc/ops/op_table.h has the
facts of each op (torch_xla_lite/lowering/base/facts.py) for the C++ code.
"""

import argparse
import collections
import dataclasses
import importlib
import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_xla_lite.lowering.base.facts import Facts
    from torch_xla_lite.lowering.base.registry import Lowering

ROOT = Path(__file__).resolve().parents[1]
_PACKAGE = "torch_xla_lite.lowering"
_HEAD = '''\
"""Which module has the lowering of each op. Written by scripts/lowering_table.py.

MODULES: module -> its ops, of whose names "aten::" is left out.
"""
'''
_HEADER = """\
// Which ops have the same facts; "aten::" is left out. Written by scripts/lowering_table.py.

#ifndef TORCH_XLA_LITE_CSRC_OPS_OP_TABLE_H_
#define TORCH_XLA_LITE_CSRC_OPS_OP_TABLE_H_

#include <string_view>
#include <utility>

#include "torch_xla_lite/csrc/ops/op_facts.h"

namespace torch_xla_lite::ops {{

// clang-format off
inline constexpr std::pair<std::string_view, OpFacts> kOpTable[] = {{
{rows}
}};
// clang-format on

}}  // namespace torch_xla_lite::ops

#endif  // TORCH_XLA_LITE_CSRC_OPS_OP_TABLE_H_
"""


def tables() -> dict[Path, str]:
    """What each of the two files should contain."""
    lowerings = _lowerings()
    return {
        ROOT / "torch_xla_lite" / "lowering" / "base" / "table.py": _modules(lowerings),
        ROOT / "torch_xla_lite" / "csrc" / "ops" / "op_table.h": _facts(lowerings),
    }


def _lowerings() -> "dict[str, Lowering]":
    from torch_xla_lite.lowering.base import registry

    # What the old table says is of no interest here.
    registry.check_declared = lambda name, entry: None
    for file in sorted(Path(registry.__file__).parents[1].glob("*.py")):
        if file.stem != "__init__":
            importlib.import_module(f"{_PACKAGE}.{file.stem}")
    # Others are registered by the files that define their ops.
    return {
        op: entry
        for op, entry in sorted(registry.LOWERINGS.items())
        if entry.fn.__module__.startswith(f"{_PACKAGE}.")
    }


def _modules(lowerings: "dict[str, Lowering]") -> str:
    modules: collections.defaultdict[str, str] = collections.defaultdict(str)
    for op, entry in lowerings.items():
        modules[entry.fn.__module__.removeprefix(f"{_PACKAGE}.")] += f"{op.removeprefix('aten::')} "
    rows = (
        f'    "{module}": """\n{textwrap.indent(textwrap.fill(ops, 92), " " * 8)}\n    """,\n'
        for module, ops in sorted(modules.items())
    )
    return f"{_HEAD}\nMODULES: dict[str, str] = {{\n{''.join(rows)}}}\n"


def _facts(lowerings: "dict[str, Lowering]") -> str:
    from torch_xla_lite.lowering.base.unlowered import UNLOWERED

    if twice := lowerings.keys() & UNLOWERED:
        raise ValueError(f"these ops have a lowering, and a row in unlowered.py: {sorted(twice)}")
    stated = {op: ["is_lowered = true", *_members(entry.facts)] for op, entry in lowerings.items()}
    stated |= {op: [*_members(facts)] for op, facts in UNLOWERED.items()}
    ops: collections.defaultdict[str, str] = collections.defaultdict(str)
    for op, members in sorted(stated.items()):
        ops[", ".join(f".{x}" for x in members)] += f"{op.removeprefix('aten::')} "
    return _HEADER.format(rows="\n".join(_row(names, facts) for facts, names in ops.items()))


def _row(ops: str, facts: str) -> str:
    """The names of some ops, in as many lines as they need, and their facts."""
    lines = " \n".join(textwrap.wrap(ops, 110)).splitlines()
    names = "\n     ".join(map(json.dumps, lines))
    return f"    {{{names}," + (" " if len(names + facts) < 105 else "\n     ") + f"{{{facts}}}}},"


def _members(facts: "Facts") -> Iterator[str]:
    """Initializers of the members that are not as in most ops."""
    for field in dataclasses.fields(facts):
        value = getattr(facts, field.name)
        if value != field.default:
            yield f"{field.name} = {json.dumps(value)}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    check = parser.parse_args().check
    sys.path.insert(0, str(ROOT))
    for path, wanted in tables().items():
        if path.is_file() and path.read_text(encoding="utf-8") == wanted:
            continue
        if check:
            print(f"{path} is out of date.\nWrite it again:  python scripts/lowering_table.py")
            return 1
        path.write_text(wanted, encoding="utf-8")
        print(f"{path} has changed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
