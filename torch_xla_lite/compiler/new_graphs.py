"""Records new graphs and their causes, for debug.explain_recompile() and debug.report().

    with new_graphs.timed(graph, structure) as info:     # around the compilation
        ...
    explain()     # [NewGraph(line="train.py:12 in step", cause="input 3 is float32[7,4], was ...")]

A graph is new when it is interpreted, compiled or loaded, and no graph of this process had its
structure, or donated the same inputs when it was compiled. Its cause is what differs from the most
similar graph that came before. The last graphs are kept; they are compared when explain_recompile
is called, or when a line of the program has compiled its tenth graph, which is worth a warning.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import itertools
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence

from ..mesh.base.placements import Root
from ..startup.program_lines import Place, place
from . import graph_differences
from .recorded_graph import RecordedGraph

# How many graphs are kept, and how many ops they may have in all: about 10 MB.
_MOST_GRAPHS = 1_000
_MOST_OPS = 20_000

# A line of the program that compiles so many graphs is worth a warning.
_MANY = 10


class RecompilationWarning(UserWarning):
    """A line of the program compiles a new graph again and again."""


@dataclasses.dataclass
class NewGraph:
    """A graph that was met for the first time.

    Attributes:
      line: of the program, which needed a value; see also `cause`.
      cause: what differs from the most similar graph before, with the line that recorded it if
        TORCH_XLA_LITE_IR_DEBUG is 1.
      num_ops: how many ops it has.
      seconds: for compiling it, for loading its program, or for the first run if it is interpreted.
      loaded: whether its program was on disk.
      number: of the executable; see _XLAC.executions.
      structure: see compiler.compile_graph.
      op: the only one, if an interpreted graph runs it compiled.
      interpreted: whether it has only been interpreted so far.
      placements: of its inputs and results, if its program is for a mesh (placements.py).
      collectives: (how many, bytes of their results for each device) by kind, of such a program.
    """

    line: str
    cause: str = ""
    num_ops: int = 0
    seconds: float = 0.0
    loaded: bool = False
    number: int = -1
    structure: int | None = None
    op: str = ""
    interpreted: bool = False
    placements: tuple[list[int], list[int]] | None = None
    collectives: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.line}: {self.cause}" + (" (interpreted)" if self.interpreted else "")


@dataclasses.dataclass
class _Known:
    """A graph that is kept. Those that differ in donation alone have one structure; the program of
    an op that interpreted graphs run compiled has none."""

    structure: int | None
    graph: Callable[[], RecordedGraph]
    info: NewGraph


class _History:
    """The graphs that are kept, oldest first: the last ones."""

    def __init__(self) -> None:
        self._graphs: collections.deque[_Known] = collections.deque()
        self._latest: dict[int | None, _Known] = {}  # of each structure
        self._num_ops = 0

    def __iter__(self) -> Iterator[_Known]:
        return iter(list(self._graphs))

    def add(self, new: _Known) -> _Known:
        """Keeps a graph unless it is known already: one that was interpreted is compiled later."""
        known = self._latest.get(new.structure)
        if known is not None and new.info.interpreted:
            return known
        if known is not None and known.info.interpreted:
            known.graph, known.info = new.graph, new.info
            return known
        self._graphs.append(new)
        if new.structure is not None:
            self._latest[new.structure] = new
        self._num_ops += new.info.num_ops
        while len(self._graphs) > 1 and (
            len(self._graphs) > _MOST_GRAPHS or self._num_ops > _MOST_OPS
        ):
            self._drop_oldest()
        return new

    def clear(self) -> None:
        while self._graphs:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        known = self._graphs.popleft()
        self._num_ops -= known.info.num_ops
        if self._latest.get(known.structure) is known:
            del self._latest[known.structure]


# What note_interpreted was told. A program that meets new shapes calls it for each graph, so these
# become NewGraphs only when somebody asks.
_Describe = Callable[[], tuple[list[tuple], list[Root]]]
_Interpreted = tuple[int, Place, int, float, _Describe]
_interpreted: collections.deque[_Interpreted] = collections.deque()
_MOST_INTERPRETED = 100

# Guards what follows: graphs may be compiled in the background.
_lock = threading.Lock()
_history = _History()
_infos: list[NewGraph] = []
_new_graphs_of: collections.Counter[str] = collections.Counter()


@contextlib.contextmanager
def timed(
    graph: RecordedGraph, structure: int | None, of: Place | None = None
) -> Iterator[NewGraph]:
    """Records a new graph with a program line, by default the one that runs, and the time that the
    body takes to compile or load it. Arguments as in compiler.compile_graph."""
    where = of or place()
    calls = graph.calls
    info = NewGraph(line=str(where), num_ops=len(calls), structure=structure)
    if structure is None:
        info.op = calls[-1].op
    start = time.perf_counter()
    yield info
    info.seconds = time.perf_counter() - start
    _keep_interpreted()
    with _lock:
        info.number = len(_infos)
        _infos.append(info)
        known = _history.add(_Known(structure, lambda: graph, info))
        # A program that was on disk costs little.
        _new_graphs_of[info.line] += not info.loaded
        is_many = info.line and not info.loaded and _new_graphs_of[info.line] == _MANY
    if is_many:
        # As if that line warned, so that Python shows it.
        warnings.warn_explicit(
            f"{where.function} compiled its tenth graph here: {_cause(known, list(_history))}.\n"
            "See all new graphs:  "
            'print(*torch_xla_lite.debug.explain_recompile(), sep="\\n")',
            RecompilationWarning,
            where.file,
            where.line,
        )


def note_interpreted(num_ops: int, seconds: float, structure: int, describe: _Describe) -> Place:
    """Remembers that a new graph ran without being compiled; called by the bridge.

    Args:
      structure: see compiler.compile_graph.
      describe: gives its steps and roots.

    Returns:
      The place in the program.
    """
    where = place()
    _interpreted.append((structure, where, num_ops, seconds, describe))
    if len(_interpreted) > _MOST_INTERPRETED or num_ops > _MOST_OPS // _MOST_INTERPRETED:
        _keep_interpreted()
    return where


def _keep_interpreted() -> None:
    with _lock:
        while _interpreted:
            structure, where, num_ops, seconds, describe = _interpreted.popleft()
            info = NewGraph(str(where), num_ops=num_ops, seconds=seconds, interpreted=True)
            _history.add(_Known(structure, functools.cache(_recorded(describe)), info))


def _recorded(describe: _Describe) -> Callable[[], RecordedGraph]:
    return lambda: RecordedGraph.of(*describe())


def _kept() -> list[_Known]:
    _keep_interpreted()
    return list(_history)


def explain() -> list[NewGraph]:
    """The new graphs that are kept, each with its cause, oldest first."""
    graphs = _kept()
    return [dataclasses.replace(known.info, cause=_cause(known, graphs)) for known in graphs]


def cause(graph: NewGraph) -> str:
    """Why one of `all_graphs` is new; empty if it is not kept any more."""
    graphs = _kept()
    return next((_cause(known, graphs) for known in graphs if known.info is graph), "")


def _cause(new: _Known, graphs: list[_Known]) -> str:
    """Why a graph of the list is new."""
    is_part = new.structure is None
    before = itertools.takewhile(lambda known: known is not new, graphs)
    alike = [known.graph() for known in before if (known.structure is None) == is_part]
    cause = graph_differences.cause(new.graph(), alike)
    op = f"{new.info.op}, which interpreted graphs run compiled: " if is_part else ""
    return op + cause


def all_graphs() -> Sequence[NewGraph]:
    """All new graphs of the process, without causes; the number of each is its index."""
    return list(_infos)


def reset() -> None:
    """Forgets the causes: graphs are compared with those that come later. What has been interpreted
    before does not become new again."""
    with _lock:
        _interpreted.clear()
        _history.clear()
        _new_graphs_of.clear()
