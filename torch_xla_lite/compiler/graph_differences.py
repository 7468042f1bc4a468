"""Says what differs between graphs, for debug.explain_recompile().

    cause(graph, graphs_before)     # "input 3 is float32[7,4], was float32[8,4]"

Only causes are named. An op whose result has another shape because an input has one is none, and
neither are the ops that follow an op which is new: ops are aligned by what both graphs begin and
end with.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..lowering.base import registry
from ..mesh.base import placements
from ..mesh.base.placements import Root
from . import words

# With how many graphs a graph is compared, and how many differences are named.
_MOST_COMPARED = 32
_MOST_NAMED = 3


@dataclasses.dataclass(frozen=True)
class Graph:
    """What decides a graph; `describe` gives its steps and roots as compiler.compile_graph gets
    them."""

    describe: Callable[[], tuple[list[tuple], list[Root]]]

    @functools.cached_property
    def _described(self) -> tuple[list[tuple], list[Root]]:
        return self.describe()

    @property
    def steps(self) -> list[tuple]:
        return self._described[0]

    @property
    def roots(self) -> list[Root]:
        return self._described[1]

    @functools.cached_property
    def ops(self) -> tuple[str, ...]:
        """The op of each step; empty for an input."""
        return tuple(map(op_text, self.steps))

    @functools.cached_property
    def counts(self) -> collections.Counter[str]:
        """How often each op is among the steps."""
        return collections.Counter(self.ops)


def cause(graph: Graph, before: Sequence[Graph]) -> str:
    """What differs between a graph and the most similar one of those before it, oldest first."""
    if not before:
        return "the first graph"
    alike = [other for other in before if other.ops == graph.ops][-_MOST_COMPARED:]
    recent = before[-_MOST_COMPARED:]
    # Of equally similar ones the last, whose line ran shortly before.
    if alike:
        nearest = max(reversed(alike), key=lambda other: _num_equal(graph, other))
    else:
        nearest = min(reversed(recent), key=lambda other: _num_other_steps(graph, other))
    return _difference(graph, nearest)


def shape_text(shape: tuple | None) -> str:
    """A dtype and dimensions, as in `float32[8,4]`."""
    if shape is None:
        return "nothing"
    dtype, dims = shape
    return f"{registry.DTYPES[dtype]}[{','.join(map(str, dims))}]"


def _num_equal(graph: Graph, other: Graph) -> int:
    return sum(map(_is_pair, zip(graph.steps, other.steps, strict=True)))


def _num_other_steps(graph: Graph, other: Graph) -> int:
    """How many steps one of the graphs has and the other one has not, wherever they are."""
    return (graph.counts - other.counts).total() + (other.counts - graph.counts).total()


def _difference(new: Graph, old: Graph) -> str:
    start = _num_pairs(zip(new.ops, old.ops, strict=False))
    most = min(len(new.steps), len(old.steps)) - start
    end = min(most, _num_pairs(zip(reversed(new.ops), reversed(old.ops), strict=False)))
    other_ops = list(
        _other_ops(new.steps[start : len(new.steps) - end], old.steps[start : len(old.steps) - end])
    )
    # An input belongs to the op that takes it, which comes later.
    with_op = start
    while other_ops and with_op and not new.ops[with_op - 1]:
        with_op -= 1
    found = [
        *other_ops,
        *_other_inputs(new, old, with_op, end),
        *_other_default_dtype(_pairs(new, old, start, end)),
    ]
    # Other constants, such as sizes, may follow from other inputs, and other results from all.
    found = found or list(_other_constants(_pairs(new, old, start, end)))
    found = found or list(_other_results(_pairs(new, old, start, end)))
    found = found or list(_other_roots(new, old))
    if not found:
        return "none: its program was dropped from memory"
    more = f"; and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return "; ".join(found[:_MOST_NAMED]) + more


def _num_pairs(items: Iterable[tuple[str, str]]) -> int:
    """How many pairs of equal items come first."""
    return sum(1 for _ in itertools.takewhile(_is_pair, items))


def _is_pair(items: tuple) -> bool:
    return items[0] == items[1]


def _pairs(new: Graph, old: Graph, start: int, end: int) -> Iterator[tuple[tuple, tuple]]:
    """The calls of one op in both graphs: among the first steps and among the last ones."""
    for number in [*range(start), *range(-end, 0)]:
        if isinstance(new.steps[number][0], str):
            yield new.steps[number], old.steps[number]


# --- differences ----------------------------------------------------------------------------------


def _other_ops(new: Sequence[tuple], old: Sequence[tuple]) -> Iterator[str]:
    """What differs between the steps that stand where the graphs differ."""
    if len(new) == len(old) == 1:
        yield f"{_name(new[0])} where {_name(old[0])} was{_recorded_at(new[0])}"
        return
    ops, were = (collections.Counter(map(op_text, steps)) for steps in (new, old))
    added, missing = ops - were, were - ops
    if added:
        yield f"it also has {_counted(added)}{_first_recorded_at(new, added)}"
    if missing:
        yield f"it lacks {_counted(missing)}{_first_recorded_at(old, missing)}"
    if new and not added and not missing:
        yield f"the same ops in another order, from {_name(new[0])} on{_recorded_at(new[0])}"


def _counted(ops: collections.Counter[str]) -> str:
    names = [_several(op, count) for op, count in ops.most_common()]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _other_inputs(new: Graph, old: Graph, start: int, end: int) -> Iterator[str]:
    for number, step, was in _input_pairs(new, old, start, end):
        if step[:2] != was[:2]:
            yield f"input {number} is {shape_text(step[:2])}, was {shape_text(was[:2])}"
        elif step[3] != was[3]:
            place, other = placements.different_texts(step[3], was[3])
            yield f"input {number} {shape_text(step[:2])} is {place}, was {other}"


def _input_pairs(
    new: Graph, old: Graph, start: int, end: int
) -> Iterator[tuple[int, tuple, tuple]]:
    """The inputs that both graphs have at the same place, with their numbers in the new one."""
    shift = len(old.steps) - len(new.steps)
    places = [place for place, step in enumerate(new.steps) if not isinstance(step[0], str)]
    for number, place in enumerate(places):
        if place < start:
            yield number, new.steps[place], old.steps[place]
        elif place >= len(new.steps) - end:
            yield number, new.steps[place], old.steps[place + shift]


def _other_default_dtype(pairs: Iterable[tuple[tuple, tuple]]) -> Iterator[str]:
    for new, old in pairs:
        dtype, was = (words.default_dtype(step[1]) for step in (new, old))
        if dtype != was:
            yield f"torch's default dtype is {dtype}, was {was}{_recorded_at(new)}"
            return


def _other_constants(pairs: Iterable[tuple[tuple, tuple]]) -> Iterator[str]:
    for new, old in pairs:
        # The words of tensors contain their shapes.
        if words.argument_words(*new[:2]) == words.argument_words(*old[:2]):
            continue
        were = words.constants(*old[:2])
        for name, value in words.constants(*new[:2]).items():
            # As text: NaN is not equal to NaN.
            if str(value) != str(were[name]):
                yield f"{name} of {_name(new)} is {value}, was {were[name]}{_recorded_at(new)}"


def _other_results(pairs: Iterable[tuple[tuple, tuple]]) -> Iterator[str]:
    for new, old in pairs:
        if new[3] != old[3]:
            shapes = [" and ".join(map(shape_text, step[3])) for step in (new, old)]
            yield f"{_name(new)} gives {shapes[0]}, was {shapes[1]}{_recorded_at(new)}"
            return


def _other_roots(new: Graph, old: Graph) -> Iterator[str]:
    for step, was in zip(new.steps, old.steps, strict=True):
        if isinstance(step[0], str) and step[2] != was[2]:
            yield f"{_name(step)} takes the results of other ops{_recorded_at(step)}"
            return
    if len(new.roots) != len(old.roots):
        yield f"{len(new.roots)} values are needed, was {len(old.roots)}"
    elif sorted(root[:2] for root in new.roots) != sorted(root[:2] for root in old.roots):
        yield "other values are needed"
    else:
        yield from _other_places(new, old)
    for number, step, was in _input_pairs(new, old, len(new.steps), 0):
        if step[2] != was[2]:
            may = "may" if step[2] else "may no longer"
            yield f"input {number} {shape_text(step[:2])} {may} be overwritten (donation)"


def _other_places(new: Graph, old: Graph) -> Iterator[str]:
    """Of the results that are written to what has a place."""
    were = {root[:2]: root[2] for root in old.roots}
    for step, output, place in new.roots:
        was = were[step, output]
        if place != was:
            texts = placements.different_texts(place or 0, was or 0)
            call = new.steps[step]
            yield f"a result of {_name(call)} is kept {texts[0]}, was {texts[1]}"


# --- names ----------------------------------------------------------------------------------------


def op_text(step: tuple) -> str:
    """The op of a call, as in `aten::relu`, or `a write through aten::t`; empty for an input."""
    if not isinstance(step[0], str):
        return ""
    return step[0] if step[6] is None else f"a write through {step[0]}"


def _name(step: tuple) -> str:
    return op_text(step) or "an input"


def _several(op: str, count: int) -> str:
    if count == 1:
        return op or "an input"
    return f"{count} x {op}" if op else f"{count} inputs"


def _recorded_at(step: tuple) -> str:
    return f" (recorded at {step[5]})" if isinstance(step[0], str) and step[5] else ""


def _first_recorded_at(steps: Iterable[tuple], ops: collections.Counter[str]) -> str:
    return next((_recorded_at(step) for step in steps if op_text(step) in ops), "")
