"""Compiles recorded graphs to XLA executables.

A graph that is met for the first time is interpreted, because most that run once never come back:
its ops run as ATen's CPU kernels (csrc/interpreter). It is compiled when its interpreted runs have
cost as much as its compilation will cost (csrc/runtime/tiering.h).

    TORCH_XLA_LITE_COMPILE=repeated      the default, as described; a model of costs decides, not a
                                         clock, and earlier processes count (past_costs.py)
    TORCH_XLA_LITE_COMPILE=first         each graph is compiled when it is met for the first time
    TORCH_XLA_LITE_COMPILE=background    a graph is compiled in another thread, and interpreted
                                         until it is; a clock decides

The bridge calls `compile_graph` with a graph that it has no executable for. jax traces the graph
(tracing.py) and compiles it. The bridge calls the result with the leaves and scalars of each later
graph with the same key.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from .. import _XLAC
from ..lowering.base import registry, target
from ..lowering.base.mesh import on_mesh
from ..mesh.base import communication, distributed, placements
from ..mesh.base.placements import Root
from ..startup import program_lines, variables
from ..startup.program_lines import Place
from . import (
    compilation_cache,
    costs,
    foreign_code,
    graph_errors,
    index_errors,
    jax_programs,
    new_graphs,
    past_costs,
    progress,
    tracing,
    words,
)
from .background import Worker
from .compilation_cache import Program
from .new_graphs import NewGraph
from .tracing import Call

# A graph, ready to be called, and what is known about it.
Compiled = tuple[Callable[..., list], NewGraph]

_ASSERTION = "aten::_functional_assert_async.msg"

# Compiles in the background.
_worker = Worker("torch_xla_lite compiler")


def register() -> None:
    """Makes this module the compiler of the bridge."""
    _XLAC.set_compiler(Compiler)
    costs.register()
    when = variables.choice(os.environ, "TORCH_XLA_LITE_COMPILE", default="repeated")
    _XLAC.set_compile_when(when)


def _start_compile(steps: list[tuple], roots: list[Root], structure: int) -> Future[Compiled]:
    """Compiles a graph in the background, after those that came before."""
    place = program_lines.place()

    def compile_here() -> Compiled:
        _XLAC.set_is_compiler_thread()
        return compile_graph(steps, roots, structure, place)

    return _worker.submit(compile_here)


def _load_graph(steps: list[tuple], roots: list[Root], structure: int) -> Compiled | None:
    """A graph whose program is on disk; else None."""
    calls, leaves = _parts(steps)
    if _is_known_when_traced(calls):
        return None
    with jax.enable_x64(True):
        if not compilation_cache.contains(
            _key(_description(calls, leaves, roots), _mesh(calls, leaves))
        ):
            return None
    return compile_graph(steps, roots, structure)


def _parts(steps: list[tuple]) -> tuple[list[Call | None], list[tuple]]:
    """The steps that are calls, with None for each leaf, and the leaves."""
    calls = [Call(*step) if isinstance(step[0], str) else None for step in steps]
    return calls, [step for step in steps if not isinstance(step[0], str)]


def _description(
    calls: Sequence[Call | None], leaves: Sequence[tuple], roots: Sequence[Root]
) -> str:
    """What decides how the graph is compiled, equal in every process."""
    programs: dict[int, int] = {}
    steps = [call if call is None else call.description(programs) for call in calls]
    takes = [(*leaf[:3], placements.text_of(leaf[3])) for leaf in leaves]
    gives = [(*root[:2], root[2] and placements.text_of(root[2])) for root in roots]
    return repr((steps, takes, gives))


def _key(description: str, mesh: Mesh | None) -> str | None:
    precision = target.float32_precision()
    settings = placements.devices_text(mesh) + ("" if precision is None else precision.name)
    return compilation_cache.key(description + settings)


def _mesh(calls: Sequence[Call | None], leaves: Sequence[tuple]) -> Mesh | None:
    """The devices that a graph is for, if not for one: those of its leaves, or of constraints.

    Raises:
      RuntimeError: there are two meshes.
    """
    numbers = [placement for *_, placement in leaves]
    numbers += [
        placements.mesh_of_constraint(words.constants(call.op, call.words)["spec"])
        for call in calls
        if call is not None and call.op == placements.CONSTRAIN
    ]
    return placements.mesh_of(numbers)


def compile_graph(
    steps: list[tuple],
    roots: list[Root],
    structure: int | None,
    place: Place | None = None,
) -> Compiled:
    """Compiles one graph, on accelerators once for each precision of float32 products that torch's
    settings have when it runs. Arguments, results and errors are those of `_compile`."""
    precision = target.float32_precision()
    function, graph = _compile(steps, roots, structure, place)
    if precision is None:
        return function, graph
    functions = {precision: function}

    def run(*arguments: jax.Array) -> list[jax.Array]:
        precision = target.float32_precision()
        if precision not in functions:
            functions[precision] = _compile(steps, roots, structure, place)[0]
        return functions[precision](*arguments)

    return run, graph


def _compile(
    steps: list[tuple],
    roots: list[Root],
    structure: int | None,
    place: Place | None = None,
) -> Compiled:
    """Compiles one graph.

    Args:
      steps: each comes after the steps that it uses. A leaf is (dtype, dims,
        donated, placement); a call is (op, words, operands, outputs, number of scalars, source
        line, written), where an operand is (step, result), an output a `Shape` or None, and
        `written` the result of a view that the call writes through, or None.
      roots: (step, result, placement) of each value to compute; a placement of None is for the
        compiler to choose.
      structure: the same for graphs that differ in donation alone; None for an op that an
        interpreted graph runs compiled.
      place: of the program, which needed a value; by default the one that runs.

    Returns:
      A function of the leaves' arrays, in order, and, if any call has scalars, of all scalars as
      int32[n, 2]; it gives one array for each root.

    Raises:
      RuntimeError: calls could not be lowered or compiled; the message names the first, and the
        line that recorded it.
    """
    calls, leaves = _parts(steps)
    mesh = _mesh(calls, leaves)
    description = _description(calls, leaves, roots)
    is_shared = mesh is not None and jax.process_count() > 1
    with (
        jax.enable_x64(True),
        new_graphs.timed(steps, roots, structure, place) as graph,
        progress.shown(
            f"compiling {graph.num_ops} ops of {graph.line}",
            "kept for the next run" if compilation_cache.is_on() else "",
        ),
    ):
        if is_shared:
            distributed.require_same_program(description, graph.line)
        program, graph.loaded = _program(calls, leaves, roots, description, mesh)
        if mesh is not None:
            graph.placements = _placements(program.executables[0], mesh, calls, leaves, roots)
            graph.collectives = program.collectives
    function = program.executables[0]
    if program.order:
        function = foreign_code.joined(program.executables, program.order)
    if is_shared:
        function = distributed.counted(function, description, graph.line)
    if program.gathered:
        function = communication.counting(function, program.gathered)
    waits = bool(program.foreign)
    if program.checks:
        errors = [
            (step, calls[step].describe(message), error) for step, message, error in program.checks
        ]
        asserted = [calls[step].op == _ASSERTION for step, *_ in program.checks]
        function = index_errors.reporting(function, errors, asserted)
        waits = waits or index_errors.immediate()
    if waits:
        function = _raising_with_source(function, calls, program)
    return function, graph


def _program(
    calls: Sequence[Call | None],
    leaves: Sequence[tuple],
    roots: Sequence[Root],
    description: str,
    mesh: Mesh | None,
) -> tuple[Program, bool]:
    """The compiled graph, and whether it is from the cache."""
    traces_first = _is_known_when_traced(calls)
    if not traces_first:
        key = _key(description, mesh)
        if (program := compilation_cache.load(key, mesh)) is not None:
            return program, True
    graph_of_jax = tracing.lower_graph(calls, leaves, roots, mesh)
    hlo = ""
    if mesh is None or traces_first:
        hlo = "".join(part.as_text() for part in graph_of_jax.parts)
    if traces_first:
        # With the description, because a program names ops and steps of its graph.
        key = _key(description + hlo, mesh)
        if (program := compilation_cache.load(key, mesh)) is not None:
            return program, True
    with on_mesh(mesh):
        options = target.compiler_options()
    try:
        executables, storable = compilation_cache.compile_parts(graph_of_jax.parts, options)
    except Exception as error:
        suspects = [step for step, call in enumerate(calls) if call is not None]
        raise graph_errors.explained(error, calls, suspects) from None
    # What partitioning adds is seen in the compiled text alone: custom calls, and collectives.
    hlo = hlo if mesh is None else executables[0].as_text()
    program = Program(
        executables=executables,
        order=graph_of_jax.order,
        fallbacks=graph_of_jax.fallbacks,
        foreign=graph_of_jax.foreign,
        checks=graph_of_jax.checks,
        gathered=graph_of_jax.gathered,
        targets=compilation_cache.targets(hlo),
        collectives={} if mesh is None else communication.of_program(hlo),
        storable=storable,
    )
    compilation_cache.store(key, program)
    return program, False


def _placements(
    program: jax.stages.Compiled,
    mesh: Mesh,
    calls: Sequence[Call | None],
    leaves: Sequence[tuple],
    roots: Sequence[Root],
) -> tuple[list[int], list[int]]:
    """Where a program for a mesh takes its leaves, and where it leaves its results."""
    replicated = placements.number_of(NamedSharding(mesh, PartitionSpec()), 0)
    takes = [placement or replicated for *_, placement in leaves]
    results = program.output_shardings
    gives = [
        placements.number_of_result(results[i], mesh, len(calls[step].outputs[output][1]))
        for i, (step, output, _) in enumerate(roots)
    ]
    return takes, gives


def _is_known_when_traced(calls: Sequence[Call | None]) -> bool:
    """Whether a jax function or a lowering of the user may be part of a graph, also in a
    decomposition of torch: what these do is known only after they were traced."""
    ops = {call.op for call in calls if call is not None}
    return jax_programs.OP in ops or any(
        op in ops or op.startswith("aten::") for op in registry.registered_by_users()
    )


def _raising_with_source(
    executable: Callable[..., list], calls: Sequence[Any], program: Program
) -> Callable:
    """Waits for what may fail, so that an error is raised here and names op and recording line.

    Counts the calls of ATen's kernels each time that the graph runs.
    """

    def run(*arguments: jax.Array) -> list[jax.Array]:
        results: list[jax.Array] = []
        try:
            results = executable(*arguments)
            if not program.order:
                jax.block_until_ready(results)
            for op in program.fallbacks:
                _XLAC.note_fallback(op)
            return results
        except Exception as error:
            # The traceback keeps them, and a sync would raise their error once more.
            for result in results:
                result.delete()
            suspects = [i for i, call in enumerate(calls) if call and call.op in program.foreign]
            raise graph_errors.explained(error, calls, suspects) from None

    return run


def _upload(array: np.ndarray) -> jax.Array:
    """A jax.Array of the same dtype, which keeps the array's memory if that is aligned."""
    # jnp.asarray takes 11 us, not 18, but compiles a program for each new shape: 12 ms.
    with jax.enable_x64(True):
        return jax.device_put(array, may_alias=True)


def _copy(array: jax.Array) -> jax.Array:
    """A copy of an array, for a graph that overwrites its argument while the program needs it."""
    with jax.enable_x64(True):
        return jnp.array(array, copy=True)


class Compiler:
    """What the executor calls (csrc/python/executor.h). A graph is given as its steps and roots,
    with a number that is the same for graphs that differ in donation alone, or None for one op of
    an interpreted graph.

    compile: compiles a graph.
    load: the same if its program is on disk; otherwise None.
    past_costs: what graphs have cost earlier processes (past_costs.py).
    start_compile: compiles a graph in another thread.
    has_host_memory: whether kernels of the CPU can read the device's memory.
    draws_threefry: whether lowerings draw the random numbers of csrc/kernels/threefry.h.
    note_interpreted: is told of a graph that was interpreted: the number of its ops, seconds, its
      structure, and a function that describes it.
    is_library: whether a file's code is no user's.
    upload, copy: a new array of a numpy array, or of an array.
    place: an array's data at a place (placements.py).
    report: is called when a value leaves the device; raises what graphs have noted by then.
    dtypes: numpy's dtypes by torch's numbers.
    """

    compile = staticmethod(compile_graph)
    load = staticmethod(_load_graph)
    past_costs = staticmethod(past_costs.load)
    start_compile = staticmethod(_start_compile)
    # By name, so that tests can replace it for lowerings and executor at once.
    has_host_memory = staticmethod(lambda: target.has_host_memory())
    draws_threefry = staticmethod(target.has_threefry)
    note_interpreted = staticmethod(new_graphs.note_interpreted)
    is_library = staticmethod(program_lines.is_library)
    upload = staticmethod(_upload)
    copy = staticmethod(_copy)
    place = staticmethod(placements.place)
    report = staticmethod(index_errors.report)
    dtypes = registry.DTYPES
