"""Counts the communication in a compiled program, for debug.collectives() and debug.metrics().

of_program(compiled.as_text())     # {"all-gather": (37, 2_127_872), "all-reduce": (3, 2_127_882)}
"""

import collections
import math
import re
from collections.abc import Callable, Sequence

# As XLA names them; asynchronous ones have a start and an end.
_KINDS = "all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter|collective-broadcast"
_CALL = re.compile(rf"= (\S.*?) ({_KINDS})(-start)?\(")
_ARRAY = re.compile(r"(pred|[a-z]+\d+)\w*\[([\d,]*)\]")

# Ops that every device has run on all of the data, and how often.
gathered: collections.Counter[str] = collections.Counter()


def of_program(hlo: str) -> dict[str, tuple[int, int]]:
    """How many collectives of each kind a program has, and the bytes of their results that each
    device gets in one execution."""
    found: dict[str, tuple[int, int]] = {}
    for line in hlo.splitlines():
        if call := _CALL.search(line):
            count, size = found.get(call[2], (0, 0))
            found[call[2]] = (count + 1, size + sum(map(_num_bytes, _ARRAY.finditer(call[1]))))
    return found


def _num_bytes(array: re.Match[str]) -> int:
    bits = 8 if array[1] == "pred" else int(re.sub(r"\D", "", array[1]))
    return math.prod(int(size) for size in array[2].split(",") if size) * bits // 8


def counting(program: Callable[..., list], ops: Sequence[str]) -> Callable[..., list]:
    """A program that counts the ops that every device runs on all of the data."""

    def run(*arguments: object) -> list:
        gathered.update(ops)
        return program(*arguments)

    return run
