"""Says what differs between graphs, for debug.explain_recompile().

    cause(graph, graphs_before)     # "input 3 is float32[7,4], was float32[8,4]"

Only causes are named. An op whose result has another shape because an input has one is none, and
neither are the ops that follow an op which is new: ops are aligned by what both graphs begin and
end with.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterable, Iterator, Sequence

from ..lowering.base import registry
from ..mesh.base import placements
from . import words
from .recorded_graph import Call, Leaf, RecordedGraph, Shape

_Step = Leaf | Call

# With how many graphs a graph is compared, and how many differences are named.
_MOST_COMPARED = 32
_MOST_NAMED = 3


def cause(graph: RecordedGraph, before: Sequence[RecordedGraph]) -> str:
    """What differs between a graph and the most similar one of those before it, oldest first."""
    if not before:
        return "the first graph"
    alike = [other for other in before if other.labels == graph.labels][-_MOST_COMPARED:]
    recent = before[-_MOST_COMPARED:]
    # Of equally similar ones the last, whose line ran shortly before.
    if alike:
        nearest = max(reversed(alike), key=lambda other: _num_equal(graph, other))
    else:
        nearest = min(reversed(recent), key=lambda other: _num_other_steps(graph, other))
    return _difference(graph, nearest)


def shape_text(shape: Shape | None) -> str:
    """A dtype and dimensions, as in `float32[8,4]`."""
    if shape is None:
        return "nothing"
    dtype, dims = shape
    return f"{registry.DTYPES[dtype]}[{','.join(map(str, dims))}]"


def shapes_text(step: _Step) -> str:
    """Those of the results of a step."""
    return ", ".join(map(shape_text, step.outputs))


def _num_equal(graph: RecordedGraph, other: RecordedGraph) -> int:
    return sum(map(_is_pair, zip(graph.steps, other.steps, strict=True)))


def _num_other_steps(graph: RecordedGraph, other: RecordedGraph) -> int:
    """How many steps one of the graphs has and the other one has not, wherever they are."""
    return (graph.counts - other.counts).total() + (other.counts - graph.counts).total()


def _difference(new: RecordedGraph, old: RecordedGraph) -> str:
    start = _num_pairs(zip(new.labels, old.labels, strict=False))
    most = min(len(new.steps), len(old.steps)) - start
    end = min(most, _num_pairs(zip(reversed(new.labels), reversed(old.labels), strict=False)))
    other_ops = list(
        _other_ops(new.steps[start : len(new.steps) - end], old.steps[start : len(old.steps) - end])
    )
    # An input belongs to the op that takes it, which comes later.
    with_op = start
    while other_ops and with_op and not new.labels[with_op - 1]:
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


def _pairs(
    new: RecordedGraph, old: RecordedGraph, start: int, end: int
) -> Iterator[tuple[Call, Call]]:
    """The calls of one op in both graphs: among the first steps and among the last ones."""
    for number in [*range(start), *range(-end, 0)]:
        step, was = new.steps[number], old.steps[number]
        if isinstance(step, Call) and isinstance(was, Call):
            yield step, was


# --- differences ----------------------------------------------------------------------------------


def _other_ops(new: Sequence[_Step], old: Sequence[_Step]) -> Iterator[str]:
    """What differs between the steps that stand where the graphs differ."""
    if len(new) == len(old) == 1:
        yield f"{_name(new[0])} where {_name(old[0])} was{_recorded_at(new[0])}"
        return
    ops, were = (collections.Counter(step.label for step in steps) for steps in (new, old))
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


def _other_inputs(new: RecordedGraph, old: RecordedGraph, start: int, end: int) -> Iterator[str]:
    for number, step, was in _input_pairs(new, old, start, end):
        if step.outputs != was.outputs:
            yield f"input {number} is {shapes_text(step)}, was {shapes_text(was)}"
        elif step.placement != was.placement:
            place, other = placements.different_texts(step.placement, was.placement)
            yield f"input {number} {shapes_text(step)} is {place}, was {other}"


def _input_pairs(
    new: RecordedGraph, old: RecordedGraph, start: int, end: int
) -> Iterator[tuple[int, Leaf, Leaf]]:
    """The inputs that both graphs have at the same place, with their numbers in the new one."""
    shift = len(old.steps) - len(new.steps)
    places = [place for place, step in enumerate(new.steps) if isinstance(step, Leaf)]
    for number, place in enumerate(places):
        step = new.steps[place]
        if place < start:
            yield number, step, old.steps[place]
        elif place >= len(new.steps) - end:
            yield number, step, old.steps[place + shift]


def _other_default_dtype(pairs: Iterable[tuple[Call, Call]]) -> Iterator[str]:
    for new, old in pairs:
        dtype, was = (words.default_dtype(step.words) for step in (new, old))
        if dtype != was:
            yield f"torch's default dtype is {dtype}, was {was}{_recorded_at(new)}"
            return


def _other_constants(pairs: Iterable[tuple[Call, Call]]) -> Iterator[str]:
    for new, old in pairs:
        # The words of tensors contain their shapes.
        if words.argument_words(new.op, new.words) == words.argument_words(old.op, old.words):
            continue
        were = words.constants(old.op, old.words)
        for name, value in words.constants(new.op, new.words).items():
            # As text: NaN is not equal to NaN.
            if str(value) != str(were[name]):
                yield f"{name} of {_name(new)} is {value}, was {were[name]}{_recorded_at(new)}"


def _other_results(pairs: Iterable[tuple[Call, Call]]) -> Iterator[str]:
    for new, old in pairs:
        if new.outputs != old.outputs:
            shapes = [" and ".join(map(shape_text, step.outputs)) for step in (new, old)]
            yield f"{_name(new)} gives {shapes[0]}, was {shapes[1]}{_recorded_at(new)}"
            return


def _other_roots(new: RecordedGraph, old: RecordedGraph) -> Iterator[str]:
    for step, was in zip(new.steps, old.steps, strict=True):
        if step.operands != was.operands:
            yield f"{_name(step)} takes the results of other ops{_recorded_at(step)}"
            return
    if len(new.roots) != len(old.roots):
        yield f"{len(new.roots)} values are needed, was {len(old.roots)}"
    elif sorted(root[:2] for root in new.roots) != sorted(root[:2] for root in old.roots):
        yield "other values are needed"
    else:
        yield from _other_places(new, old)
    for number, step, was in _input_pairs(new, old, len(new.steps), 0):
        if step.donated != was.donated:
            may = "may" if step.donated else "may no longer"
            yield f"input {number} {shapes_text(step)} {may} be overwritten (donation)"


def _other_places(new: RecordedGraph, old: RecordedGraph) -> Iterator[str]:
    """Of the results that are written to what has a place."""
    were = {root[:2]: root[2] for root in old.roots}
    for step, output, place in new.roots:
        was = were[step, output]
        if place != was:
            texts = placements.different_texts(place or 0, was or 0)
            yield f"a result of {_name(new.steps[step])} is kept {texts[0]}, was {texts[1]}"


# --- names ----------------------------------------------------------------------------------------


def _name(step: _Step) -> str:
    return step.label or "an input"


def _several(op: str, count: int) -> str:
    if count == 1:
        return op or "an input"
    return f"{count} x {op}" if op else f"{count} inputs"


def _recorded_at(step: _Step) -> str:
    return f" (recorded at {step.source})" if step.source else ""


def _first_recorded_at(steps: Iterable[_Step], ops: collections.Counter[str]) -> str:
    return next((_recorded_at(step) for step in steps if step.label in ops), "")
