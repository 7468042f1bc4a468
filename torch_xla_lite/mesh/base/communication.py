"""Counts the communication in a compiled program, for debug.collectives() and debug.metrics().

of_program(compiled.as_text())     # {"all-gather": (37, 2_127_872), "all-reduce": (3, 2_127_882)}
bytes_sent(compiled.as_text())     # {"all-gather": 1_861_888, "all-reduce": 3_723_794}
"""

import collections
import math
import re
from collections.abc import Callable, Iterator, Sequence

# As XLA names them; asynchronous ones have a start and an end.
_KINDS = "all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter|collective-broadcast"
_CALL = re.compile(rf"= (\S.*?) ({_KINDS})(-start)?\(")
# XLA for TPUs writes one that runs beside other operations at its start, in these and at its end.
_CHAIN = re.compile(r'chain_id="(\d+)"')
_ARRAY = re.compile(r"(pred|[a-z]+\d+)\w*\[([\d,]*)\]")

# Devices of a mesh that differ in some axes only, or in a part of an axis.
_ALONG_AXES = re.compile(r"replica_groups=mesh\[(.*?)\] \{(.*?)\}")

# Ops that every device has run on all of the data, and how often.
gathered: collections.Counter[str] = collections.Counter()


def of_program(hlo: str) -> dict[str, tuple[int, int]]:
    """How many collectives of each kind a program has, and the bytes of their results that each
    device gets in one execution."""
    found: dict[str, tuple[int, int]] = {}
    for kind, size, _ in _calls(hlo):
        count, before = found.get(kind, (0, 0))
        found[kind] = (count + 1, before + size)
    return found


def bytes_sent(hlo: str) -> dict[str, float]:
    """The bytes that each device sends in one execution, by kind, where devices that communicate
    form rings."""
    found: collections.Counter[str] = collections.Counter()
    for kind, size, line in _calls(hlo):
        group = _size_of_group(line)
        part = (group - 1) / group
        factor = {"all-reduce": 2 * part, "reduce-scatter": group - 1, "collective-permute": 1}
        found[kind] += size * factor.get(kind, part)
    return dict(found)


def _calls(hlo: str) -> Iterator[tuple[str, int, str]]:
    """The collectives of a program: kind, bytes of the results on a device, the line."""
    chains: set[str] = set()
    for line in hlo.splitlines():
        if call := _CALL.search(line):
            if chain := _CHAIN.search(line):
                if chain[1] in chains:
                    continue
                chains.add(chain[1])
            kind, starts = call[2], call[3] is not None
            arrays = [*map(_num_bytes, _ARRAY.finditer(call[1]))]
            if starts and kind == "collective-permute":
                arrays = arrays[1:2]  # The operand, the result, and perhaps two counters.
            elif starts and kind != "all-reduce":
                arrays = arrays[len(arrays) // 2 :]  # The operands, then the results.
            yield kind, sum(arrays), line


def _size_of_group(line: str) -> int:
    """How many devices a collective connects."""
    if of_mesh := _ALONG_AXES.search(line):
        sizes = {name: int(size) for name, size in re.findall(r"'(\w+)'=(\d+)", of_mesh[1])}
        axes = re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", of_mesh[2])
        return math.prod(int(part or sizes[name]) for name, part in axes)
    if by_shape := re.search(r"replica_groups=\[(?:\d+,)*(\d+)\]<=", line):
        return int(by_shape[1])
    if listed := re.search(r"replica_groups=\{\{([\d,]+)\}", line):
        return listed[1].count(",") + 1
    return 1


def _num_bytes(array: re.Match[str]) -> int:
    bits = 8 if array[1] == "pred" else int(re.sub(r"\D", "", array[1]))
    return math.prod(int(size) for size in array[2].split(",") if size) * bits // 8


def counting(program: Callable[..., list], ops: Sequence[str]) -> Callable[..., list]:
    """A program that counts the ops that every device runs on all of the data."""

    def run(*arguments: object) -> list:
        gathered.update(ops)
        return program(*arguments)

    return run
