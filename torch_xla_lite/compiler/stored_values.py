"""Finds the values of a graph that XLA should store, because it would compute them many times.

    found = stored_values.find(steps)      # then ffi.store(value) for each output of these steps

XLA's CPU compiler fuses an elementwise op with each op that uses it, and a normalisation uses its
input several times. In a chain such as `x = norm(x + f(x))`, each layer would repeat the code of
all layers before: 32 of them took 33 CPU seconds to compile, and the same written for `jax.jit` 107
(docs/decisions.md). A stored value ends the chain.
"""

from collections.abc import Sequence

from ..lowering.base import registry
from .recorded_graph import Call, Leaf

# Module of the lowering -> about how many elementwise operations one of its ops is. Ops of other
# modules end a chain: XLA stores the results of products, convolutions, reductions and calls.
_COSTS = {
    "activation": 3,
    "binary": 1,
    "norm": 8,
    "softmax": 4,
    "ternary": 1,
    "unary": 1,
    "views": 1,
}
# Modules whose ops use their operands several times.
_REPEATED_USE = frozenset({"norm", "softmax"})
# A longer chain is stored where it is used twice. A stored value costs a copy and about 1 us; the
# chain of one normalisation and a sum is not stored, that of two is.
_LONGEST_CHAIN = 12


def find(graph: Sequence[Leaf | Call]) -> set[int]:
    """The steps whose results should be stored."""
    # A view may be larger than its base, so the base is stored.
    base_of = list(range(len(graph)))
    uses = [0] * len(graph)
    for step, op in enumerate(graph):
        if _is_view(op):
            base_of[step] = base_of[op.operands[0][0]]
            continue
        for operand, _ in op.operands:
            uses[base_of[operand]] += 2 if _module(op) in _REPEATED_USE else 1
    chains = [0] * len(graph)
    found: set[int] = set()
    for step, op in enumerate(graph):
        if _is_view(op) or (cost := _COSTS.get(_module(op))) is None:
            continue
        chains[step] = cost + sum(chains[base] for base in {base_of[at] for at, _ in op.operands})
        if chains[step] > _LONGEST_CHAIN and uses[step] > 1:
            found.add(step)
            chains[step] = 0
    return found


def _is_view(op: Leaf | Call) -> bool:
    return _module(op) == "views" and len(op.operands) == 1


def _module(op: Leaf | Call) -> str:
    return registry.DECLARED.get(op.op, "")
