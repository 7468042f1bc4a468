"""Compiles what jax has traced of a recorded graph, and makes its program a function.

program = compilation.compiled(graph, lowered)
results = compilation.function_of(program, graph, line)(*leaves)
"""

from __future__ import annotations

import dataclasses
import re
import threading
from collections.abc import Callable
from typing import Any

from torch_xla_lite.startup.late_jax import jax

from ..lowering.base import target
from ..mesh.base import communication, distributed
from ..startup import after_import
from . import compilation_cache, foreign_code, graph_errors, index_errors
from .compilation_cache import Program
from .recorded_graph import RecordedGraph
from .tracing import LoweredGraph

Function = Callable[..., list]

# Executables that jax took from its own cache, counted for each thread.
_of_jax = threading.local()

# As StableHLO writes them, then HLO, where small ones are calls.
_LOOP = re.compile(r"stablehlo\.(while|case|if)\b| (while|conditional)\(|xla_cpu_small_call")


def compiled(graph: RecordedGraph, lowered: LoweredGraph) -> Program:
    """The program of a graph; under `jax.enable_x64(True)` and `on_mesh(graph.mesh)`.

    Raises:
      RuntimeError: calls could not be compiled; the message names the first, and the line that
        recorded it.
    """
    try:
        executables = _executables(lowered)
    except Exception as error:
        suspects = [i for i, step in enumerate(graph.steps) if step.op]
        raise graph_errors.explained(error, graph.steps, suspects) from None
    # What partitioning adds is seen in the compiled text alone: custom calls, and collectives.
    text = lowered.text if graph.mesh is None else executables[0].as_text()
    return dataclasses.replace(
        lowered.program,
        executables=executables,
        targets=compilation_cache.targets(text),
        collectives={} if graph.mesh is None else communication.of_program(text),
        storable=not _of_jax.loaded,
    )


def function_of(program: Program, graph: RecordedGraph, line: str) -> Function:
    """What the bridge calls to run a graph: a function of the leaves' arrays, in order, and, if any
    call has scalars, of all scalars as int32[n, 2]; it gives one array for each root.

    Args:
      line: of the user's program, for the messages of other processes.
    """
    function = program.executables[0]
    if program.foreign:
        function = foreign_code.raising(program, graph.steps)
    if graph.is_shared:
        function = distributed.counted(function, graph.description, line)
    if program.gathered:
        function = communication.counting(function, program.gathered)
    if program.checks:
        function = index_errors.reporting(function, program.checks, graph.steps)
    return function


def _has_loops(text: str) -> bool:
    """Whether a program, before or after XLA's passes, has loops or branches."""
    return _LOOP.search(text) is not None


def _executables(lowered: LoweredGraph) -> tuple[Any, ...]:
    options = target.compiler_options(has_loops=_has_loops(lowered.text))
    of_loops = target.compiler_options(has_loops=True)
    executables = _compile(lowered.parts, options)
    # XLA makes loops, too, such as of some scatters.
    if options != of_loops and any(_has_loops(part.as_text()) for part in executables):
        return _compile(lowered.parts, of_loops)
    return executables


def _compile(parts: tuple[jax.stages.Lowered, ...], options: dict[str, Any]) -> tuple[Any, ...]:
    _of_jax.loaded = 0
    return tuple(part.compile(options) for part in parts)


def _note_event(event: str, **_: object) -> None:
    # jax records this on the thread that compiles.
    if event == "/jax/compilation_cache/cache_hits":
        _of_jax.loaded = getattr(_of_jax, "loaded", 0) + 1


after_import.call({"jax.monitoring": lambda of_jax: of_jax.register_event_listener(_note_event)})
