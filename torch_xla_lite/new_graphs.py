"""Records new graphs and their causes, for debug.explain_recompile() and debug.report().

    with new_graphs.timed(steps, roots) as graph:      # around everything that a new graph costs
        ...
    explain()     # [NewGraph(line="train.py:12 in step", cause="input 3 float32[7,4], was [8,4]")]

A graph is new when it is compiled or loaded, and no graph of this process had its key. Its cause is
what differs from the most similar graph that came before. The graphs are kept as the bridge
describes them, the last ones only, so that they take little memory; they are compared when
explain_recompile is called, or when a line of the program has compiled its tenth new graph, which
is worth a warning.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import itertools
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from . import words
from .lowering import registry

# How many steps the graphs that are kept may have in all: about 10 MB.
_MOST_STEPS = 20_000

# A line of the program that has so many new graphs is worth a warning.
_MANY = 10

_LIBRARIES = tuple(f"{Path(file).parent}/" for file in (torch.__file__, __file__))


class RecompilationWarning(UserWarning):
    """A line of the program has a new graph again and again."""


@dataclasses.dataclass
class NewGraph:
    """A graph that was met for the first time.

    Attributes:
      line: of the program, which needed a value; see also `cause`.
      cause: what differs from the most similar graph before, with the line that recorded it if
        TORCH_XLA_LITE_IR_DEBUG is 1.
      num_ops: how many ops it has.
      seconds: for compiling it, or for loading its program.
      loaded: whether its program was on disk.
      number: of the executable; see _XLAC.executions.
    """

    line: str
    cause: str = ""
    num_ops: int = 0
    seconds: float = 0.0
    loaded: bool = False
    number: int = -1

    def __str__(self) -> str:
        return f"{self.line}: {self.cause}"


@dataclasses.dataclass(frozen=True)
class _Graph:
    """What decides a graph, as compiler.compile_graph gets it."""

    steps: list[tuple]
    roots: list[tuple[int, int]]
    info: NewGraph

    @property
    def ops(self) -> list[str]:
        """The op of each step; empty for a leaf."""
        return [step[0] if isinstance(step[0], str) else "" for step in self.steps]


@dataclasses.dataclass
class Interpreted:
    """The graphs of one line of the program that ran without being compiled."""

    line: str
    graphs: int = 0
    num_ops: int = 0  # of all of them
    seconds: float = 0.0  # in all


# Where the program is: file, line and function.
Place = tuple[str, int, str]

# Guards what follows: graphs may be compiled in the background.
_lock = threading.Lock()
_graphs: collections.deque[_Graph] = collections.deque()
_infos: list[NewGraph] = []
_interpreted: dict[str, Interpreted] = {}
_new_graphs_of: collections.Counter[str] = collections.Counter()


@contextlib.contextmanager
def timed(
    steps: list[tuple], roots: list[tuple[int, int]], of: Place | None = None
) -> Iterator[NewGraph]:
    """Records a new graph with a program line, by default the one that runs, and the time that the
    body takes to compile or load it."""
    file, line, function = of or place()
    info = NewGraph(line=_text(file, line, function))
    info.num_ops = sum(isinstance(step[0], str) for step in steps)
    start = time.perf_counter()
    yield info
    info.seconds = time.perf_counter() - start
    with _lock:
        info.number = len(_infos)
        _infos.append(info)
        _graphs.append(_Graph(steps, roots, info))
        while len(_graphs) > 1 and sum(len(graph.steps) for graph in _graphs) > _MOST_STEPS:
            _graphs.popleft()
        # A program that was on disk costs little.
        _new_graphs_of[info.line] += not info.loaded
        is_many = info.line and not info.loaded and _new_graphs_of[info.line] == _MANY
        cause = _cause(len(_graphs) - 1) if is_many else ""
    if is_many:
        # As if that line warned, so that Python shows it.
        warnings.warn_explicit(
            f"{function} has its tenth new graph here: {cause}.\n"
            "Each new graph is compiled. See them all:  "
            'print(*torch_xla_lite.debug.explain_recompile(), sep="\\n")',
            RecompilationWarning,
            file,
            line,
        )


def note_interpreted(num_ops: int, seconds: float) -> None:
    """Remembers that a graph ran without being compiled; called by the bridge."""
    line = _text(*place())
    found = _interpreted.setdefault(line, Interpreted(line))
    found.graphs += 1
    found.num_ops += num_ops
    found.seconds += seconds


def interpreted() -> Sequence[Interpreted]:
    """The graphs that ran without being compiled, by line."""
    return list(_interpreted.values())


def explain() -> list[NewGraph]:
    """The new graphs that are kept, each with its cause, oldest first."""
    with _lock:
        return [
            dataclasses.replace(graph.info, cause=_cause(index))
            for index, graph in enumerate(_graphs)
        ]


def all_graphs() -> Sequence[NewGraph]:
    """All new graphs of the process, without causes; the number of each is its index."""
    return list(_infos)


def reset() -> None:
    """Forgets the causes: graphs are compared with those that come later."""
    _graphs.clear()
    _new_graphs_of.clear()


def place() -> Place:
    """Where the program is that needs a value now; outside torch and this package."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((*_LIBRARIES, "<frozen")) and file != contextlib.__file__:
            return file, frame.f_lineno, frame.f_code.co_name
        frame = frame.f_back  # type: ignore[assignment]
    return "", 0, ""


def _text(file: str, line: int, function: str) -> str:
    return f"{file}:{line} in {function}" if file else ""


# --- comparing ------------------------------------------------------------------------------------


def _cause(index: int) -> str:
    """What differs between a graph and the most similar one before it."""
    graph = _graphs[index]
    before = list(itertools.islice(_graphs, index))
    if not before:
        return "the first graph"
    # Of equally similar ones the last, whose line ran shortly before.
    nearest = max(reversed(before), key=lambda other: _similarity(graph, other))
    return _difference(graph, nearest)


def _similarity(graph: _Graph, other: _Graph) -> tuple[int, int]:
    """Larger for graphs that are more alike: how many steps agree in their ops from the beginning,
    and in everything."""
    same_ops = sum(
        1 for _ in itertools.takewhile(_is_pair, zip(graph.ops, other.ops, strict=False))
    )
    equal = sum(map(_is_pair, zip(graph.steps, other.steps, strict=False)))
    return same_ops - abs(len(graph.steps) - len(other.steps)), equal


def _is_pair(items: tuple) -> bool:
    return items[0] == items[1]


def _difference(graph: _Graph, other: _Graph) -> str:
    if graph.ops != other.ops:
        return _other_ops(graph, other)
    found = _other_inputs(graph, other) or _other_arguments(graph, other)
    if found:
        return "; ".join(found[:3]) + (f"; and {len(found) - 3} more" if len(found) > 3 else "")
    if sorted(graph.roots) != sorted(other.roots):
        return f"{len(graph.roots)} values are needed, was {len(other.roots)}, or other ones"
    return "another old value may be overwritten (donation)"


def _other_ops(graph: _Graph, other: _Graph) -> str:
    for new, old in itertools.zip_longest(graph.steps, other.steps):
        if old is None:
            return f"{_named(new)} comes after the ops of a graph before{_recorded_at(new)}"
        if new is None:
            return f"it ends before {_named(old)}"
        if _named(new) != _named(old):
            return f"{_named(new)} where {_named(old)} was{_recorded_at(new)}"
    return "another order"


def _other_inputs(graph: _Graph, other: _Graph) -> list[str]:
    pairs = zip(_inputs(graph), _inputs(other), strict=True)
    return [
        f"input {number} is {shape_text(new)}, was {shape_text(old)}"
        for number, (new, old) in enumerate(pairs)
        if new != old
    ]


def _inputs(graph: _Graph) -> list[tuple]:
    return [step[:2] for step in graph.steps if not isinstance(step[0], str)]


def _other_arguments(graph: _Graph, other: _Graph) -> list[str]:
    found = []
    for new, old in zip(graph.steps, other.steps, strict=True):
        if not isinstance(new[0], str) or (new[1], new[3]) == (old[1], old[3]):
            continue
        values, were = words.constants(*new[:2]), words.constants(*old[:2])
        changed = [
            f"{name} of {new[0]} is {value}, was {were[name]}"
            for name, value in values.items()
            if value != were[name]
        ]
        if not changed:
            shapes = [" and ".join(map(shape_text, step[3])) for step in (new, old)]
            changed = [f"{new[0]} gives {shapes[0]}, was {shapes[1]}"]
        found += [change + _recorded_at(new) for change in changed]
    return found


def _named(step: tuple) -> str:
    return step[0] if isinstance(step[0], str) else f"an input {shape_text(step[:2])}"


def _recorded_at(step: tuple) -> str:
    return f" (recorded at {step[5]})" if isinstance(step[0], str) and step[5] else ""


def shape_text(shape: tuple | None) -> str:
    """A dtype and dimensions, as in `float32[8,4]`."""
    if shape is None:
        return "nothing"
    dtype, dims = shape
    return f"{registry.DTYPES[dtype]}[{','.join(map(str, dims))}]"
