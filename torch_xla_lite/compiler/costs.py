"""The costs of ops by which the bridge decides when to compile a graph (csrc/runtime/tiering.h).

costs.json is what scripts/bench/costs.py fits to measurements: the costs of each kind of op, in
microseconds of one core, and those of a graph. An op is of the kind of the module that has its
lowering; kind "write" is a write through a view, and "other" is any other op. A kind has four costs
of an interpreted run, four of a run in a compiled graph, each for a call, element of an operand,
element of a result, and multiplication; and that of compiling a call.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from .. import _XLAC
from ..lowering.base import registry
from ..mesh.base import placements
from . import jax_programs

FILE = Path(__file__).with_name("costs.json")


def register() -> None:
    """Tells the bridge what ops cost."""
    use(table())


def table() -> dict[str, Any]:
    """The content of costs.json."""
    return json.loads(FILE.read_text())


def use(costs: dict[str, Any]) -> None:
    """Tells the bridge other costs, of the form of costs.json."""
    kinds = costs["kinds"]
    other = kinds["other"]
    ops = {name: kinds.get(module, other) for name, module in registry.DECLARED.items()}
    ops |= {"other": other, "write": kinds["write"]}
    # Only a compiled program computes what a jax function computes, or has a place on a mesh.
    for op in (jax_programs.OP, placements.CONSTRAIN):
        ops[op] = [math.inf, *[0.0] * 7, other[-1]]
    _XLAC.set_costs(ops, costs["graph"])
