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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import _XLAC
from ..lowering.base import registry
from ..mesh.base import placements
from ..startup import late_jax
from . import jax_programs

FILE = Path(__file__).with_name("costs.json")

_IMPORT_OF_JAX = 500_000.0  # Microseconds.

# Ops that read as many elements of their first operand as they return.
_GATHERS = frozenset(
    f"aten::{name}"
    for name in (
        "embedding",
        "_embedding_bag",
        "_embedding_bag_forward_only",
        "gather",
        "index.Tensor",
        "_unsafe_index.Tensor",
        "index_select",
        "take",
    )
)

# Of the kind "views", ops that write their results.
_COPIES = ("_copy", "_scatter", "_backward")


def register() -> None:
    """Tells the bridge what ops cost."""
    use(table())


def table() -> dict[str, Any]:
    """The content of costs.json."""
    return json.loads(FILE.read_text())


def counted(op: str, size: Sequence[float]) -> list[float]:
    """What of the size of a call its time depends on: a table of an embedding may be of any size.

    Args:
      size: calls, elements of operands, elements of results, multiplications.
    """
    calls, operands, results, products = size
    if op in _GATHERS:
        operands = results
    elif registry.DECLARED.get(op) == "views" and not op.partition(".")[0].endswith(_COPIES):
        operands = results = 0
    return [calls, operands, results, products]


def _of_op(op: str, row: list[float]) -> list[float]:
    """The costs of an op of a kind: linear in what is counted of a size."""
    if counted(op, (1, 2, 3, 4)) == [1, 2, 3, 4]:
        return row
    units = [counted(op, unit) for unit in np.eye(4)]
    return [*np.dot(units, row[:4]).tolist(), *np.dot(units, row[4:8]).tolist(), row[8]]


def use(costs: dict[str, Any]) -> None:
    """Tells the bridge other costs, of the form of costs.json."""
    kinds = costs["kinds"]
    other = kinds["other"]
    ops = {name: _of_op(name, kinds.get(kind, other)) for name, kind in registry.DECLARED.items()}
    ops |= {"other": other, "write": kinds["write"]}
    # Only a compiled program computes what a jax function computes, or has a place on a mesh.
    for op in (jax_programs.OP, placements.CONSTRAIN):
        ops[op] = [math.inf, *[0.0] * 7, other[-1]]
    start = 0 if late_jax.is_imported() else _IMPORT_OF_JAX
    _XLAC.set_costs(ops, [*costs["graph"], start])
