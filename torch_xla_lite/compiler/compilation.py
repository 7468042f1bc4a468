"""Loads the program of a recorded graph from disk, or traces and compiles it.

program, is_loaded = compilation.program_of(graph)
"""

from __future__ import annotations

from ..lowering.base import target
from ..lowering.base.mesh import on_mesh
from ..mesh.base import communication
from . import compilation_cache, graph_errors, tracing
from .compilation_cache import Program
from .recorded_graph import RecordedGraph


def program_of(graph: RecordedGraph) -> tuple[Program, bool]:
    """The compiled graph, and whether it is from the cache; under `jax.enable_x64(True)`.

    Raises:
      RuntimeError: calls could not be lowered or compiled; the message names the first, and the
        line that recorded it.
    """
    lowered = tracing.lower_graph(graph) if graph.is_known_when_traced else None
    key = graph.key(lowered.text() if lowered else "")
    if (program := compilation_cache.load(key, graph.mesh)) is not None:
        return program, True
    program = _compiled(graph, lowered or tracing.lower_graph(graph))
    compilation_cache.store(key, program)
    return program, False


def _compiled(graph: RecordedGraph, lowered: tracing.LoweredGraph) -> Program:
    with on_mesh(graph.mesh):
        options = target.compiler_options()
    try:
        executables, storable = compilation_cache.compile_parts(lowered.parts, options)
    except Exception as error:
        suspects = [step for step, call in enumerate(graph.calls) if call is not None]
        raise graph_errors.explained(error, graph.calls, suspects) from None
    # What partitioning adds is seen in the compiled text alone: custom calls, and collectives.
    text = lowered.text() if graph.mesh is None else executables[0].as_text()
    return Program(
        executables=executables,
        order=lowered.order,
        fallbacks=lowered.fallbacks,
        foreign=lowered.foreign,
        checks=lowered.checks,
        gathered=lowered.gathered,
        targets=compilation_cache.targets(text),
        collectives={} if graph.mesh is None else communication.of_program(text),
        storable=storable,
    )
