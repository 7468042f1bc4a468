"""The function that the bridge calls to run a graph: its program, and what each run does beside it.

    results = running.function_of(program, graph, line)(*leaves)

What it does beside it depends on the program: checks, foreign code, other processes.
"""

from __future__ import annotations

from collections.abc import Callable

import jax

from .. import _XLAC
from ..mesh.base import communication, distributed
from . import foreign_code, graph_errors, index_errors
from .compilation_cache import Program
from .recorded_graph import RecordedGraph

Function = Callable[..., list]

_ASSERTION = "aten::_functional_assert_async.msg"


def function_of(program: Program, graph: RecordedGraph, line: str) -> Function:
    """A function of the leaves' arrays, in order, and, if any call has scalars, of all scalars as
    int32[n, 2]; it gives one array for each root.

    Args:
      line: of the user's program, for the messages of other processes.
    """
    function = program.executables[0]
    if program.order:
        function = foreign_code.joined(program.executables, program.order)
    if graph.is_shared:
        function = distributed.counted(function, graph.description, line)
    if program.gathered:
        function = communication.counting(function, program.gathered)
    if program.checks:
        function = _checking(function, program, graph)
    if program.foreign or (program.checks and index_errors.immediate()):
        function = _raising_with_source(function, program, graph)
    return function


def _checking(function: Function, program: Program, graph: RecordedGraph) -> Function:
    errors = [
        (step, graph.calls[step].describe(message), error)
        for step, message, error in program.checks
    ]
    asserted = [graph.calls[step].op == _ASSERTION for step, *_ in program.checks]
    return index_errors.reporting(function, errors, asserted)


def _raising_with_source(function: Function, program: Program, graph: RecordedGraph) -> Function:
    """Waits for what may fail, so that an error is raised here and names op and recording line.

    Counts the calls of ATen's kernels each time that the graph runs.
    """

    def run(*arguments: jax.Array) -> list[jax.Array]:
        results: list[jax.Array] = []
        try:
            results = function(*arguments)
            if not program.order:
                jax.block_until_ready(results)
            for op in program.fallbacks:
                _XLAC.note_fallback(op)
            return results
        except Exception as error:
            # The traceback keeps them, and a sync would raise their error once more.
            for result in results:
                result.delete()
            suspects = [
                i for i, call in enumerate(graph.calls) if call and call.op in program.foreign
            ]
            raise graph_errors.explained(error, graph.calls, suspects) from None

    return run
